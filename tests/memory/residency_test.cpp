// Which pages of a process are present, and when this was last checked.
#include "memory/residency.h"

#include <gtest/gtest.h>

#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

namespace offpath::memory {
namespace {

constexpr std::uint64_t block_bytes = 64 << 10;
constexpr std::uint64_t second_ns = 1'000'000'000;

// Two blocks of anonymous memory of this process. None of their pages exists.
class Pages : public testing::Test {
  protected:
    void SetUp() override {
        void* const mapped =
            mmap(nullptr, 3 * block_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(mapped, MAP_FAILED);
        mapped_ = static_cast<std::byte*>(mapped);
        ASSERT_EQ(madvise(mapped_, 3 * block_bytes, MADV_NOHUGEPAGE), 0);
        const auto address = reinterpret_cast<std::uint64_t>(mapped);
        pages_ = mapped_ + ((address + block_bytes - 1) / block_bytes * block_bytes - address);
        residency_.open(getpid());
    }
    void TearDown() override { munmap(mapped_, 3 * block_bytes); }

    std::byte* page(std::size_t i) { return pages_ + i * page_bytes_; }
    void make(std::size_t i) { std::memset(page(i), 1, 1); }
    void drop(std::size_t i) { ASSERT_EQ(madvise(page(i), page_bytes_, MADV_DONTNEED), 0); }
    bool resident(std::size_t first, std::size_t count, std::uint64_t now_ns, bool writes = false) {
        return residency_.resident(reinterpret_cast<std::uint64_t>(page(first)), count * page_bytes_, writes,
                                   now_ns);
    }

    const std::size_t page_bytes_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t per_block_ = block_bytes / page_bytes_;
    std::byte* mapped_ = nullptr;
    std::byte* pages_ = nullptr;
    Residency residency_;
};

TEST_F(Pages, AreLookedAtOneByOne) {
    make(0);
    EXPECT_TRUE(resident(0, 1, 1));
    EXPECT_TRUE(resident(0, 1, 1, true));
    EXPECT_FALSE(resident(per_block_, 1, 1));
    EXPECT_FALSE(resident(0, per_block_ + 1, 1));
    make(per_block_);
    EXPECT_FALSE(resident(per_block_, 1, 1)) << "one look at a time";
    EXPECT_TRUE(resident(per_block_, 1, 2));
}

TEST_F(Pages, AreRememberedForASecondThoughANeighbourIsAbsent) {
    if (per_block_ < 4) GTEST_SKIP() << "a block has no neighbours with pages of " << page_bytes_;
    make(2);
    ASSERT_TRUE(resident(2, 1, 1));
    drop(2);
    EXPECT_TRUE(resident(2, 1, 1 + second_ns));
    EXPECT_FALSE(resident(2, 1, 2 + second_ns));
}

TEST_F(Pages, OverTheEdgeOfABlockAreKnownByBothBlocks) {
    make(per_block_ - 1);
    make(per_block_);
    ASSERT_TRUE(resident(per_block_ - 1, 2, 1));
    drop(per_block_);
    EXPECT_TRUE(resident(per_block_ - 1, 2, second_ns));
    EXPECT_FALSE(resident(per_block_ - 1, 2, 3 * second_ns));
}

TEST_F(Pages, OfAFileAreForReadingUntilTheFileIsKnownToBeMemory) {
    const int file = memfd_create("residency", MFD_CLOEXEC);
    ASSERT_GE(file, 0);
    ASSERT_EQ(ftruncate(file, block_bytes), 0);
    ASSERT_EQ(mmap(pages_, block_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0), pages_);
    close(file);
    make(0);
    EXPECT_TRUE(resident(0, 1, 1));
    EXPECT_FALSE(resident(0, 1, 1, true));
    const auto address = reinterpret_cast<std::uint64_t>(pages_);
    residency_.learn(memory_file_at(getpid(), address), 1);
    EXPECT_TRUE(resident(0, 1, 2, true));
    EXPECT_TRUE(resident(0, 1, 2));
}

}  // namespace
}  // namespace offpath::memory
