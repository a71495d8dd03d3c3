// What a forked child and its parent see of memory that the parent shares with its device.
#include "base/child_copies.h"

#include "memory/host_allocator.h"

#include <cstring>
#include <functional>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace offpath::memory {
namespace {

bool is_filled(const void* memory, int value, std::size_t bytes) {
    const auto* const at = static_cast<const unsigned char*>(memory);
    return at[0] == value && std::memcmp(at, at + 1, bytes - 1) == 0;
}

// Forks. The child runs `check` once the parent has run `change`. Returns the child's status.
int forked(const std::function<bool()>& check, const std::function<void()>& change) {
    int go[2];
    EXPECT_EQ(pipe(go), 0);
    const pid_t child = fork();
    if (child == 0) {
        close(go[1]);
        char word = 0;
        while (read(go[0], &word, 1) > 0) {
        }
        _exit(check() ? 0 : 1);
    }
    change();
    close(go[0]);
    close(go[1]);
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
}

struct ChildCopies : testing::Test {
    static constexpr std::size_t bytes = std::size_t{3} << 20;
    HostAllocator allocator;
    HostAllocator::Allocation memory;
    void SetUp() override {
        ASSERT_EQ(allocator.allocate(bytes, memory), Status::ok);
        std::memset(memory.address, 1, bytes);
    }
    void fill(int value) const { std::memset(memory.address, value, bytes); }
};

TEST_F(ChildCopies, NeitherSeesWhatTheOtherWrites) {
    const auto check = [&] {
        const bool seen = is_filled(memory.address, 1, bytes);
        fill(3);
        return seen;
    };
    EXPECT_EQ(forked(check, [&] { fill(2); }), 0);
    EXPECT_TRUE(is_filled(memory.address, 2, bytes));
    fill(1);
    EXPECT_EQ(forked(check, [&] { fill(2); }), 0) << "the second child";
}

TEST_F(ChildCopies, AChildsChildHasItsOwn) {
    const auto check = [&] {
        const auto as_before = [&] { return is_filled(memory.address, 1, bytes); };
        return forked(as_before, [&] { fill(4); }) == 0 && is_filled(memory.address, 4, bytes);
    };
    EXPECT_EQ(forked(check, [&] { fill(2); }), 0);
    EXPECT_TRUE(is_filled(memory.address, 2, bytes));
}

TEST_F(ChildCopies, KeptMemoryToo) {
    HostAllocator::Allocation kept;
    {
        HostAllocator other;
        ASSERT_EQ(other.allocate(bytes, kept), Status::ok);
        ASSERT_EQ(other.keep(kept.address), Status::ok);
    }
    std::memset(kept.address, 5, bytes);
    const auto check = [&] { return is_filled(kept.address, 5, bytes); };
    EXPECT_EQ(forked(check, [&] { std::memset(kept.address, 6, bytes); }), 0);
}

TEST_F(ChildCopies, PagesThatNobodyUsedStayAbsent) {
    HostAllocator::Allocation large;
    ASSERT_EQ(allocator.allocate(std::size_t{1} << 30, large), Status::ok);
    auto* const at = static_cast<char*>(large.address);
    at[5] = at[large.bytes - 1] = 7;
    const auto check = [&] { return at[5] == 7 && at[large.bytes / 2] == 0 && at[large.bytes - 1] == 7; };
    EXPECT_EQ(forked(check, [&] { at[5] = 8; }), 0);
    struct stat facts {};
    ASSERT_EQ(fstat(large.fd, &facts), 0);
    EXPECT_LE(static_cast<std::size_t>(facts.st_blocks) * 512, 2 * huge_page_bytes);
}

TEST_F(ChildCopies, ForgottenMemoryIsNotTouched) {
    HostAllocator::Allocation withdrawn;
    ASSERT_EQ(allocator.withdraw(memory.address, withdrawn), Status::ok);
    allocator.release(withdrawn);
    EXPECT_EQ(forked([] { return true; }, [] {}), 0);
}

TEST_F(ChildCopies, WithoutADescriptorAllIsCopied) {
    Mapping mapping;
    File file;
    ASSERT_EQ(make_memory_file("test", bytes, file), Status::ok);
    ASSERT_EQ(Mapping::map(file.get(), bytes, mapping), Status::ok);
    child_copies::note(mapping.data(), bytes, -1);
    std::memset(mapping.data(), 9, bytes);
    const auto check = [&] { return is_filled(mapping.data(), 9, bytes); };
    EXPECT_EQ(forked(check, [&] { std::memset(mapping.data(), 8, bytes); }), 0);
    child_copies::forget(mapping.data());
}

}  // namespace
}  // namespace offpath::memory
