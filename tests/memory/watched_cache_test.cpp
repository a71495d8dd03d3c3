// Registrations of memory that is freed behind our back.
#include "memory/watched_cache.h"

#include <cstdlib>
#include <set>
#include <thread>

#include <dirent.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

namespace offpath::memory {
namespace {

struct Registration {
    std::uint64_t generation = 0;
};

int threads_of_this_process() {
    int count = 0;
    DIR* const tasks = opendir("/proc/self/task");
    while (const dirent* task = readdir(tasks))
        count += task->d_name[0] != '.';
    closedir(tasks);
    return count;
}

class WatchedCacheTest : public testing::Test {
  protected:
    void SetUp() override {
        std::string why_not;
        if (UnmapWatcher::probe(why_not) != Status::ok) GTEST_SKIP() << why_not;
    }
    // The generation of the registration that covers the range now.
    std::uint64_t acquire(const void* memory, std::size_t bytes) {
        WatchedCache<Registration>::Pin pin;
        const Status status = cache_.acquire(
            memory, bytes,
            [&](std::uintptr_t, std::size_t, std::uint64_t generation, Registration& made) {
                made.generation = generation;
                ++made_;
                return Status::ok;
            },
            pin);
        EXPECT_EQ(status, Status::ok);
        EXPECT_EQ(pin->generation, pin.generation());
        return pin->generation;
    }
    static char* map(std::size_t bytes, void* where = nullptr) {
        void* const memory = mmap(where, bytes, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | (where != nullptr ? MAP_FIXED : 0), -1, 0);
        EXPECT_NE(memory, MAP_FAILED);
        return static_cast<char*>(memory);
    }
    WatchedCache<Registration> cache_{std::uint64_t{1} << 30};
    int made_ = 0;
};

constexpr std::size_t size = 1 << 20;

TEST_F(WatchedCacheTest, MemoryThatStaysIsRegisteredOnce) {
    char* const memory = map(size);
    const std::uint64_t generation = acquire(memory, size);
    for (int i = 0; i < 100; ++i) {
        memory[i * 4096] = 1;  // watched memory can be used, also for the first time
        ASSERT_EQ(acquire(memory + i, size - 100), generation);
    }
    EXPECT_EQ(made_, 1);
    munmap(memory, size);
}

TEST_F(WatchedCacheTest, UnmappedAndMappedAgainIsAnotherGeneration) {
    char* memory = map(size);
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 50; ++i) {
        ASSERT_TRUE(seen.insert(acquire(memory, size)).second) << "a stale registration was returned";
        munmap(memory, size);
        memory = map(size, memory);
        memory[0] = 1;
    }
    munmap(memory, size);
}

TEST_F(WatchedCacheTest, EveryWayToLoseMemory) {
    char* const memory = map(4 * size);
    std::set<std::uint64_t> seen;
    const auto lost_by = [&](const char* how) {
        EXPECT_TRUE(seen.insert(acquire(memory, size)).second) << how;
        EXPECT_FALSE(seen.insert(acquire(memory, size)).second) << "registered for nothing after " << how;
    };
    lost_by("start");
    munmap(memory + 4096, 4096);
    map(4096, memory + 4096);
    lost_by("munmap of one page inside");
    map(size, memory);
    lost_by("mmap over it");
    madvise(memory, size, MADV_DONTNEED);
    lost_by("madvise DONTNEED");
    madvise(memory + 8192, 4096, MADV_FREE);
    lost_by("madvise FREE");
    void* const moved = mremap(memory, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, memory + 2 * size);
    ASSERT_EQ(moved, memory + 2 * size);
    map(size, memory);
    lost_by("mremap");
    munmap(memory, 4 * size);
}

TEST_F(WatchedCacheTest, FreeOfALargeBlock) {
    // The C library unmaps such a block inside free(), where no wrapper of munmap would see it.
    std::set<std::uint64_t> generations;
    std::set<void*> addresses;
    int reused = 0;
    for (int i = 0; i < 20; ++i) {
        void* const block = std::malloc(32 << 20);
        ASSERT_NE(block, nullptr);
        static_cast<char*>(block)[0] = 1;
        reused += !addresses.insert(block).second;
        ASSERT_TRUE(generations.insert(acquire(block, 32 << 20)).second);
        std::free(block);
    }
    EXPECT_GT(reused, 0) << "the test needs an address to come back";
}

TEST_F(WatchedCacheTest, ATrimmedHeap) {
    char* const start = static_cast<char*>(sbrk(0));
    const std::intptr_t grow = 4 << 20;
    if (sbrk(grow) == reinterpret_cast<void*>(-1)) GTEST_SKIP() << "the heap cannot grow";
    start[0] = 1;
    const std::uint64_t before = acquire(start, 1 << 20);
    if (sbrk(-grow) == reinterpret_cast<void*>(-1) || sbrk(grow) != start)
        GTEST_SKIP() << "somebody used the heap";
    start[0] = 1;
    EXPECT_NE(acquire(start, 1 << 20), before);
    if (sbrk(0) == start + grow) sbrk(-grow);
}

TEST_F(WatchedCacheTest, AFork) {
    char* const memory = map(size);
    const std::uint64_t before = acquire(memory, size);
    const pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
    const std::uint64_t after = acquire(memory, size);
    EXPECT_NE(after, before);
    EXPECT_EQ(acquire(memory, size), after);
    munmap(memory, size);
}

TEST_F(WatchedCacheTest, WhatCannotBeWatchedIsNotKept) {
    const int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
    ASSERT_GE(id, 0);
    void* const segment = shmat(id, nullptr, 0);
    shmctl(id, IPC_RMID, nullptr);
    ASSERT_NE(acquire(segment, 4096), acquire(segment, 4096));
    shmdt(segment);
    const auto stats = cache_.stats();
    EXPECT_EQ(stats.entries, 0u);
}

TEST_F(WatchedCacheTest, CostsNothingWithoutRegistrations) {
    const int before = threads_of_this_process();
    {
        WatchedCache<Registration> idle(1 << 20);
        idle.take_events();
        EXPECT_EQ(threads_of_this_process(), before);
    }
    char* const memory = map(size);
    acquire(memory, size);
    EXPECT_EQ(threads_of_this_process(), before + 1);
    cache_.clear();
    EXPECT_EQ(threads_of_this_process(), before);
    const std::uint64_t again = acquire(memory, size);
    munmap(memory, size);
    ASSERT_EQ(map(size, memory), memory);
    EXPECT_NE(acquire(memory, size), again) << "watching starts anew";
    munmap(memory, size);
}

TEST_F(WatchedCacheTest, ThreadsThatFreeAndRegisterAtOnce) {
    std::vector<std::thread> threads;
    std::atomic<int> stale{0};
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([&] {
            std::uint64_t last = 0;
            for (int i = 0; i < 200; ++i) {
                char* const memory = map(64 << 10);
                WatchedCache<Registration>::Pin pin;
                const auto make = [](auto, auto, std::uint64_t generation, Registration& made) {
                    made.generation = generation;
                    return Status::ok;
                };
                if (cache_.acquire(memory, 64 << 10, make, pin) != Status::ok || pin->generation <= last)
                    ++stale;
                last = pin->generation;
                munmap(memory, 64 << 10);
            }
        });
    for (auto& thread : threads)
        thread.join();
    EXPECT_EQ(stale, 0);
}

}  // namespace
}  // namespace offpath::memory
