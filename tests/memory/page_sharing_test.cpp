// Buffers of this process whose pages a device maps: which, when, and what becomes of them.
#include "memory/page_sharing.h"

#include "../emulation.h"
#include "memory/plain_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace offpath::memory {
namespace {

struct PageSharingTest : testing::Test {
    using Change = PageSharing::Change;
    static constexpr std::size_t bytes = std::size_t{6} << 20;
    PageSharing& sharing = PageSharing::of_process();
    unsigned char* block = nullptr;
    void SetUp() override {
        if (offpath::test::emulated()) GTEST_SKIP() << "qemu's user mode does not pass madvise() on";
        block = static_cast<unsigned char*>(map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS));
        std::memset(block, 3, bytes);
        sharing.begin([] { return true; });
        if (!sharing.on()) GTEST_SKIP() << "memory files have a limit here";
    }
    void TearDown() override {
        if (block == nullptr) return;
        munmap(block, bytes);
        sharing.changes(begin(), begin() + bytes, Change::gone);
        sharing.stop();
    }
    // Never twice at the same addresses: those of memory that was lost are not shared again.
    static void* map(int rights, int flags) {
        static std::uintptr_t place = 0x5000'0000'0000;
        place += std::uintptr_t{64} << 20;
        return mmap(reinterpret_cast<void*>(place), bytes, rights, flags, -1, 0);
    }
    std::uintptr_t begin() const { return reinterpret_cast<std::uintptr_t>(block); }
    // Uses [first, first + count) until it is shared. Returns how many bytes are.
    std::size_t use(std::size_t first = 0, std::size_t count = bytes) {
        std::size_t sum = 0;
        const std::uintptr_t from = begin() + first;
        for (int i = 0; i < 10; ++i)
            if (sharing.used(from, from + count)) {
                const PageRange pages = sharing.share(from, from + count);
                sum += pages.end - pages.begin;
            }
        return sum;
    }
    bool holds(unsigned char value) const {
        return block[0] == value && std::memcmp(block, block + 1, bytes - 1) == 0;
    }
    unsigned char in_file(std::size_t offset) const {
        unsigned char value = 0;
        EXPECT_EQ(pread(sharing.file(), &value, 1, static_cast<off_t>(begin() + offset)), 1);
        return value;
    }
};

TEST_F(PageSharingTest, ThePagesOfABufferThatIsUsedAgain) {
    for (std::uint32_t i = 1; i < PageSharing::uses_before; ++i) {
        EXPECT_FALSE(sharing.used(begin(), begin() + bytes));
        EXPECT_EQ(sharing.share(begin(), begin() + bytes).begin, 0u);
    }
    EXPECT_TRUE(sharing.used(begin(), begin() + bytes));
    const PageRange pages = sharing.share(begin(), begin() + bytes);
    ASSERT_GT(pages.end - pages.begin, bytes / 2);
    EXPECT_EQ(sharing.shared_bytes(), pages.end - pages.begin);
    EXPECT_TRUE(holds(3));
    const std::size_t middle = (pages.begin + pages.end) / 2 - begin();
    block[middle] = 4;
    EXPECT_EQ(in_file(middle), 4);
    const unsigned char five = 5;
    ASSERT_EQ(pwrite(sharing.file(), &five, 1, static_cast<off_t>(begin() + middle)), 1);
    EXPECT_EQ(block[middle], 5);
    EXPECT_EQ(use(), 0u) << "once";
}

TEST_F(PageSharingTest, OnlyWholePagesInside) {
    const std::size_t shared = use(100, bytes - 200);
    EXPECT_GT(shared, bytes / 3);
    EXPECT_LE(shared, bytes - 2 * page_bytes());
    EXPECT_TRUE(holds(3));
    block[0] = block[bytes - 1] = 9;
    EXPECT_EQ(in_file(0), 0);
    EXPECT_EQ(in_file(bytes - 1), 0);
}

TEST_F(PageSharingTest, WhatChangesIsPrivateAgain) {
    ASSERT_GT(use(), 0u);
    sharing.changes(begin() + (2 << 20), begin() + (4 << 20), Change::kept);
    EXPECT_TRUE(holds(3));
    block[3 << 20] = 4;
    EXPECT_EQ(in_file(3 << 20), 0);
    PageRange gone;
    sharing.claim(this, *std::make_unique<std::vector<PageRange>>());
    sharing.changes(begin(), begin() + bytes, Change::dropped);
    ASSERT_TRUE(sharing.take_gone(this, gone));
    sharing.release(this);
    EXPECT_EQ(sharing.shared_bytes(), 0u);
    EXPECT_EQ(block[page_bytes()], 0);
    EXPECT_EQ(block[3 << 20], 4) << "was private";
}

TEST_F(PageSharingTest, ABlockThatEndsTakesNoPageOfItsNeighbours) {
    ASSERT_GT(use(), 0u);
    sharing.changes(begin() + 100, begin() + (3 << 20) - 100, Change::dropped);
    EXPECT_EQ(block[50], 3);
    EXPECT_EQ(block[(3 << 20) - 50], 3);
    EXPECT_EQ(block[1 << 20], 0);
}

TEST_F(PageSharingTest, AChangeEndsTheCount) {
    for (int round = 0; round < 3; ++round) {
        for (std::uint32_t i = 1; i < PageSharing::uses_before; ++i)
            EXPECT_FALSE(sharing.used(begin(), begin() + bytes));
        sharing.changes(begin(), begin() + bytes, Change::dropped);
    }
}

// Behind everybody's back: by a system call.
TEST_F(PageSharingTest, OtherMemoryAtTheAddressIsNoticed) {
    ASSERT_GT(use(), 0u);
    sharing.check(begin(), begin() + bytes);
    EXPECT_GT(sharing.shared_bytes(), 0u);
    ASSERT_EQ(mmap(block, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
              block);
    sharing.check(begin(), begin() + bytes);
    EXPECT_EQ(sharing.shared_bytes(), 0u);
    EXPECT_TRUE(sharing.has_gone());
}

// A part of it. The rest keeps its bytes, and stays shared.
TEST_F(PageSharingTest, OtherMemoryInTheMiddleIsNoticed) {
    ASSERT_GT(use(), 0u);
    const std::size_t before = sharing.shared_bytes(), part = std::size_t{2} << 20;
    ASSERT_EQ(
        mmap(block + part, part, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
        block + part);
    sharing.check(begin(), begin() + part);
    EXPECT_EQ(sharing.shared_bytes(), before) << "nobody uses that part";
    sharing.check(begin(), begin() + bytes);
    EXPECT_EQ(sharing.shared_bytes(), before - part);
    std::memset(block + part, 3, part);
    EXPECT_TRUE(holds(3));
    block[100] = 5;
    EXPECT_EQ(in_file(100), 5);
}

// Moved by a system call that nobody watches: its bytes are still those of the program.
TEST_F(PageSharingTest, MemoryThatWasMovedUnseenKeepsItsBytes) {
    if (use() != bytes) GTEST_SKIP() << "the system's huge pages cut the block in parts";
    void* const place = map(PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS);
    ASSERT_NE(syscall(SYS_mremap, block, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place), -1);
    sharing.check(begin(), begin() + bytes);
    EXPECT_EQ(sharing.shared_bytes(), 0u);
    unsigned char* const other = static_cast<unsigned char*>(
        mmap(block, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    std::memset(other, 7, bytes);
    EXPECT_EQ(use(), 0u) << "its place in the file is taken";
    munmap(std::exchange(block, static_cast<unsigned char*>(place)), bytes);
    EXPECT_TRUE(holds(3));
}

TEST_F(PageSharingTest, MemoryThatIsNotPlainStays) {
    const auto stays = [&](const char* what) { EXPECT_EQ(use(), 0u) << what; };
    ASSERT_EQ(mprotect(block + (1 << 20), page_bytes(), PROT_READ), 0);
    stays("a part cannot be written");
    ASSERT_EQ(mprotect(block + (1 << 20), page_bytes(), PROT_READ | PROT_WRITE), 0);
    for (const int advice : {MADV_DONTFORK, MADV_DONTDUMP, MADV_WIPEONFORK}) {
        ASSERT_EQ(madvise(block, bytes, advice), 0);
        sharing.changes(begin(), begin() + bytes, Change::gone);  // it may be tried again
        stays("it has a property");
        ASSERT_EQ(madvise(block, bytes, advice + 1), 0);
    }
    sharing.changes(begin(), begin() + bytes, Change::gone);
    EXPECT_GT(use(), 0u);
}

TEST_F(PageSharingTest, MemoryOfFilesStays) {
    munmap(block, bytes);
    block = static_cast<unsigned char*>(map(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS));
    EXPECT_EQ(use(), 0u);
}

TEST_F(PageSharingTest, AStackStays) {
    alignas(4096) unsigned char large[1 << 20];
    std::memset(large, 1, sizeof large);
    const auto from = reinterpret_cast<std::uintptr_t>(large);
    for (int i = 0; i < 10; ++i)
        sharing.used(from, from + sizeof large);
    EXPECT_EQ(sharing.share(from, from + sizeof large).end, 0u);
}

TEST_F(PageSharingTest, NothingIsSharedBesideADeviceThatMayHavePinnedPages) {
    EXPECT_TRUE(no_device_is_open());
    for (const char* path : {"/dev/net/tun", "/dev/vhost-net", "/dev/kvm", "/dev/hpet", "/dev/loop-control",
                             "/dev/cpu_dma_latency", "/dev/hwrng", "/dev/rtc0"}) {
        const File device(open(path, O_RDONLY | O_CLOEXEC));
        if (!device) continue;
        EXPECT_FALSE(no_device_is_open()) << path;
        EXPECT_EQ(use(), 0u) << path;
        return;
    }
    GTEST_SKIP() << "this user may open no device";
}

TEST_F(PageSharingTest, NothingIsSharedWhereMemoryCallsAreNotWatched) {
    sharing.begin([] { return false; });
    EXPECT_EQ(use(), 0u);
    EXPECT_FALSE(sharing.on());
}

TEST_F(PageSharingTest, AChildHasItsOwnMemoryAndSharesNothing) {
    ASSERT_GT(use(), 0u);
    int go[2];
    ASSERT_EQ(pipe(go), 0);
    const pid_t child = fork();
    if (child == 0) {
        close(go[1]);
        char word = 0;
        (void)!read(go[0], &word, 1);
        const bool good = holds(3) && sharing.shared_bytes() == 0 && !sharing.on();
        std::memset(block, 9, bytes);
        _exit(good ? 0 : 1);
    }
    std::memset(block, 4, bytes);
    close(go[0]);
    close(go[1]);
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(holds(4));
    EXPECT_FALSE(sharing.on()) << "a process that forks";
}

TEST_F(PageSharingTest, OneSessionAtATimeIsTold) {
    ASSERT_GT(use(), 0u);
    std::vector<PageRange> first, second;
    int one = 0, other = 0;
    EXPECT_TRUE(sharing.claim(&one, first));
    EXPECT_EQ(first.size(), 1u);
    EXPECT_FALSE(sharing.claim(&other, second));
    sharing.release(&one);
    EXPECT_TRUE(sharing.claim(&other, second));
    EXPECT_EQ(second.size(), 1u);
    sharing.release(&other);
}

}  // namespace
}  // namespace offpath::memory
