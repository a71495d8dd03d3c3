#include "memory/host_allocator.h"

#include "base/child_copies.h"
#include "memory/copy.h"

#include <cstring>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace offpath::memory {
namespace {

TEST(HostAllocator, GivesZeroedPagesThatOthersCanMap) {
    HostAllocator allocator;
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{4097}, std::size_t{5} << 20}) {
        HostAllocator::Allocation allocation;
        ASSERT_EQ(allocator.allocate(bytes, allocation), Status::ok);
        EXPECT_GE(allocation.bytes, bytes);
        EXPECT_EQ(allocation.bytes % 4096, 0u);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(allocation.address) %
                      (bytes >= huge_page_bytes ? huge_page_bytes : 4096),
                  0u);
        auto* const memory = static_cast<char*>(allocation.address);
        EXPECT_EQ(memory[0], 0);
        EXPECT_EQ(memory[allocation.bytes - 1], 0);
        memory[allocation.bytes - 1] = 5;
        Mapping other;
        ASSERT_EQ(Mapping::map(allocation.fd, allocation.bytes, other), Status::ok);
        EXPECT_EQ(other.data()[allocation.bytes - 1], std::byte{5});
        EXPECT_NE(fcntl(allocation.fd, F_GETFD) & FD_CLOEXEC, 0);
        EXPECT_NE(ftruncate(allocation.fd, 0), 0) << "nobody can shrink it";
    }
}

TEST(HostAllocator, RegionsAreNeverNamedTwice) {
    HostAllocator allocator;
    HostAllocator::Allocation first, second, found;
    ASSERT_EQ(allocator.allocate(4096, first), Status::ok);
    EXPECT_EQ(allocator.table().resolve(first.address, 8).region, 0u) << "not published yet";
    EXPECT_EQ(allocator.publish(first), Status::ok);
    EXPECT_EQ(allocator.table().resolve(first.address, 8).region, first.region);
    EXPECT_EQ(allocator.withdraw(static_cast<char*>(first.address) + 1, found), Status::invalid);
    ASSERT_EQ(allocator.withdraw(first.address, found), Status::ok);
    EXPECT_EQ(found.region, first.region);
    EXPECT_EQ(allocator.table().resolve(first.address, 8).region, 0u);
    allocator.release(first);
    EXPECT_EQ(fcntl(first.fd, F_GETFD), -1) << "the descriptor is closed";
    ASSERT_EQ(allocator.allocate(4096, second), Status::ok);
    EXPECT_GT(second.region, first.region);
    EXPECT_EQ(allocator.allocate(0, second), Status::invalid);
    EXPECT_NE(allocator.allocate(SIZE_MAX, second), Status::ok);
}

TEST(HostAllocator, WhatIsKeptOutlivesIt) {
    auto allocator = std::make_unique<HostAllocator>();
    HostAllocator::Allocation kept;
    ASSERT_EQ(allocator->allocate(100000, kept), Status::ok);
    EXPECT_EQ(allocator->keep(static_cast<char*>(kept.address) + 1), Status::invalid);
    EXPECT_EQ(allocator->keep(kept.address), Status::ok);
    std::memset(kept.address, 7, 100000);
    allocator.reset();
    EXPECT_EQ(static_cast<const char*>(kept.address)[99999], 7);
    child_copies::forget(kept.address);
    munmap(kept.address, kept.bytes);
}

TEST(HostAllocator, ThreadsAllocateAtOnce) {
    HostAllocator allocator;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 50; ++i) {
                HostAllocator::Allocation allocation, withdrawn;
                ASSERT_EQ(allocator.allocate(8192, allocation), Status::ok);
                EXPECT_EQ(allocator.publish(allocation), Status::ok);
                ASSERT_EQ(allocator.table().resolve(allocation.address, 8192).region, allocation.region);
                ASSERT_EQ(allocator.withdraw(allocation.address, withdrawn), Status::ok);
                allocator.release(withdrawn);
            }
        });
    for (auto& thread : threads)
        thread.join();
    EXPECT_EQ(allocator.table().size(), 0u);
}

TEST(HostAllocator, MemoryThatIsNotUsedTakesNone) {
    HostAllocator allocator;
    HostAllocator::Allocation allocation;
    ASSERT_EQ(allocator.allocate(std::size_t{64} << 20, allocation), Status::ok);
    static_cast<char*>(allocation.address)[allocation.bytes - 1] = 7;
    struct stat facts {};
    ASSERT_EQ(fstat(allocation.fd, &facts), 0);
    EXPECT_LE(static_cast<std::size_t>(facts.st_blocks) * 512, huge_page_bytes);
}

TEST(HostAllocator, TheLimitOfFileSizesIsAnError) {
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit limit {
            .rlim_cur = 100000, .rlim_max = 100000
        };
        HostAllocator allocator;
        HostAllocator::Allocation allocation;
        const bool good = setrlimit(RLIMIT_FSIZE, &limit) == 0 &&
                          allocator.allocate(200000, allocation) == Status::memory &&
                          allocator.allocate(50000, allocation) == Status::ok;
        _exit(good ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST(Copy, LongAndShortAndUnaligned) {
    const std::size_t longest = (std::size_t{3} << 20) + 77;
    std::vector<unsigned char> from(longest + 16), to(longest + 16);
    for (std::size_t i = 0; i < from.size(); ++i)
        from[i] = static_cast<unsigned char>(i * 31 + (i >> 9));
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{1}, std::size_t{4099}, std::size_t{1} << 20, longest})
        for (const std::size_t shift : {0, 3}) {
            std::fill(to.begin(), to.end(), 0);
            copy_bytes(to.data() + shift, from.data() + 5, bytes);
            ASSERT_TRUE(std::equal(from.begin() + 5, from.begin() + 5 + static_cast<std::ptrdiff_t>(bytes),
                                   to.begin() + static_cast<std::ptrdiff_t>(shift)));
            ASSERT_EQ(to[shift + bytes], 0);
        }
}

}  // namespace
}  // namespace offpath::memory
