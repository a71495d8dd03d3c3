// Device memory that program and host share, and the copies that the program does itself.
#include "target/program/direct_copies.h"

#include <gtest/gtest.h>

#include <sys/mman.h>

#include <cstring>
#include <random>
#include <string>

namespace offpath::target {
namespace {

// The host maps the pool in the same process, at another address.
struct Pool {
    Pool() {
        copies.pool().open([this](int descriptor, std::uint64_t bytes) {
            there = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
            return reinterpret_cast<std::uint64_t>(there);
        });
    }
    ~Pool() { munmap(there, SharedPool::pool_bytes); }
    char* block(std::uint64_t bytes) { return reinterpret_cast<char*>(copies.pool().allocate(bytes)); }
    static std::uint64_t address(const void* at) { return reinterpret_cast<std::uint64_t>(at); }

    DirectCopies copies;
    void* there = nullptr;
};

TEST(SharedPool, BlocksAreApartAndAligned) {
    Pool world;
    SharedPool& pool = world.copies.pool();
    std::mt19937 random(3);
    std::map<std::uint64_t, std::uint64_t> blocks;
    for (int i = 0; i < 2000; ++i) {
        if (blocks.size() > 40 || (!blocks.empty() && random() % 3 == 0)) {
            const auto one = std::next(blocks.begin(), random() % blocks.size());
            EXPECT_TRUE(pool.release(one->first));
            EXPECT_FALSE(pool.release(one->first));
            blocks.erase(one);
            continue;
        }
        const std::uint64_t bytes = random() % (SharedPool::most_bytes / 3);
        const std::uint64_t address = pool.allocate(bytes);
        ASSERT_NE(address, 0U);
        EXPECT_EQ(address % SharedPool::alignment, 0U);
        const auto next = blocks.lower_bound(address);
        EXPECT_TRUE(next == blocks.end() || address + bytes <= next->first);
        EXPECT_TRUE(next == blocks.begin() || std::prev(next)->first + std::prev(next)->second <= address);
        blocks[address] = bytes;
    }
    for (const auto& [address, bytes] : blocks)
        pool.release(address);
    // What was released is whole again.
    const std::uint64_t first = pool.allocate(SharedPool::most_bytes);
    for (std::uint64_t i = 1; i < SharedPool::pool_bytes / SharedPool::most_bytes; ++i)
        EXPECT_EQ(pool.allocate(SharedPool::most_bytes), first + i * SharedPool::most_bytes);
    EXPECT_EQ(pool.allocate(1), 0U);
}

TEST(SharedPool, RefusesWhatIsNotItsOwn) {
    Pool world;
    SharedPool& pool = world.copies.pool();
    EXPECT_EQ(pool.allocate(SharedPool::most_bytes + 1), 0U);
    const std::uint64_t block = pool.allocate(1000);
    EXPECT_NE(pool.find(block, 1000), nullptr);
    EXPECT_NE(pool.find(block + 999, 1), nullptr);
    EXPECT_EQ(pool.find(block + 1000, 100), nullptr);
    EXPECT_EQ(pool.find(block, SharedPool::pool_bytes), nullptr);
    EXPECT_EQ(pool.find(block, UINT64_MAX), nullptr);
    EXPECT_EQ(pool.find(block - 1, 1), nullptr);
    EXPECT_EQ(pool.find(Pool::address(&world), 1), nullptr);
    EXPECT_FALSE(pool.release(block + SharedPool::alignment));
    EXPECT_FALSE(pool.release(Pool::address(&world)));
}

TEST(SharedPool, IsEmptyWhereTheHostCannotMapIt) {
    SharedPool unopened, refused;
    refused.open([](int, std::uint64_t) { return std::uint64_t{0}; });
    for (SharedPool* pool : {&unopened, &refused}) {
        EXPECT_EQ(pool->allocate(8), 0U);
        EXPECT_EQ(pool->find(0, 0), nullptr);
        EXPECT_FALSE(pool->release(0));
    }
}

TEST(DirectCopies, AnIdleStreamNeedsNoRequest) {
    Pool world;
    char* const block = world.block(100);
    const std::string text = "to the device";
    std::string back(text.size(), ' ');
    EXPECT_TRUE(world.copies.put(1, Pool::address(block) + 3, text.data(), text.size()));
    EXPECT_EQ(std::string(block + 3, text.size()), text);
    block[3] = 'T';
    EXPECT_TRUE(world.copies.get(1, back.data(), Pool::address(block) + 3, back.size()));
    EXPECT_EQ(back, "To the device");
    EXPECT_TRUE(world.copies.is_idle(1));
    EXPECT_FALSE(world.copies.put(1, Pool::address(&world), text.data(), 1));
    EXPECT_TRUE(world.copies.release(1, Pool::address(block)));
    EXPECT_FALSE(world.copies.get(1, back.data(), Pool::address(block), 1));
}

TEST(DirectCopies, AGetWaitsForTheRequestsBeforeIt) {
    Pool world;
    int& there = *reinterpret_cast<int*>(world.block(sizeof(int)));
    const int five = 5;
    int first = 0, second = 0;
    EXPECT_TRUE(world.copies.put(1, Pool::address(&there), &five, sizeof five));
    EXPECT_TRUE(world.copies.begin_request(1).empty());
    EXPECT_FALSE(world.copies.put(1, Pool::address(&there), &first, sizeof first));
    EXPECT_TRUE(world.copies.get(1, &first, Pool::address(&there), sizeof first));
    EXPECT_TRUE(world.copies.get(2, &second, Pool::address(&there), sizeof second))
        << "another stream is idle";
    EXPECT_EQ(first, 0);
    EXPECT_EQ(second, 5);
    there = 6;  // what the request does
    world.copies.begin_sync(1, 70);
    EXPECT_EQ(first, 0);
    world.copies.finish(70, true);
    EXPECT_EQ(first, 6);
    EXPECT_TRUE(world.copies.is_idle(1));
}

TEST(DirectCopies, ARequestBehindAGetMakesItARequest) {
    Pool world;
    int& there = *reinterpret_cast<int*>(world.block(sizeof(int)));
    int here = 0;
    EXPECT_TRUE(world.copies.begin_request(1).empty());
    EXPECT_TRUE(world.copies.get(1, &here, Pool::address(&there), sizeof here));
    const auto gets = world.copies.begin_request(1);
    ASSERT_EQ(gets.size(), 1U);
    EXPECT_EQ(gets[0].destination, &here);
    EXPECT_EQ(gets[0].address, Pool::address(&there));
    there = 9;
    world.copies.begin_sync(1, 1);
    world.copies.finish(1, true);
    EXPECT_EQ(here, 0) << "it is done twice";
}

TEST(DirectCopies, AnEarlierSyncDoesNotEndLaterWork) {
    Pool world;
    int& there = *reinterpret_cast<int*>(world.block(sizeof(int)));
    int here = 0;
    (void)world.copies.begin_request(1);
    world.copies.begin_sync(1, 1);
    (void)world.copies.begin_request(1);
    EXPECT_TRUE(world.copies.get(1, &here, Pool::address(&there), sizeof here));
    world.copies.begin_sync(1, 2);
    world.copies.finish(1, true);
    EXPECT_FALSE(world.copies.is_idle(1));
    there = 4;
    world.copies.finish(2, true);
    EXPECT_EQ(here, 4);
}

TEST(DirectCopies, AFailedSyncGetsNothing) {
    Pool world;
    int& there = *reinterpret_cast<int*>(world.block(sizeof(int)));
    int here = 0;
    (void)world.copies.begin_request(1);
    EXPECT_TRUE(world.copies.get(1, &here, Pool::address(&there), sizeof here));
    world.copies.begin_sync(1, 1);
    there = 3;
    world.copies.finish(1, false);
    EXPECT_EQ(here, 0);
    EXPECT_TRUE(world.copies.is_idle(1));
}

TEST(DirectCopies, AnErrorThatAnEventKeepsIsThereForTheSync) {
    Pool world;
    int& there = *reinterpret_cast<int*>(world.block(sizeof(int)));
    int here = 0;
    (void)world.copies.begin_request(1);
    EXPECT_TRUE(world.copies.get(1, &here, Pool::address(&there), sizeof here));
    world.copies.begin_sync(1, 1, true);
    there = 3;
    world.copies.finish(1, false);
    EXPECT_FALSE(world.copies.is_idle(1)) << "no sync would ask for the error";
    EXPECT_FALSE(world.copies.put(1, Pool::address(&there), &here, sizeof here));
    world.copies.begin_sync(1, 2);
    world.copies.finish(2, false);
    EXPECT_EQ(here, 0);
    EXPECT_TRUE(world.copies.is_idle(1));
}

TEST(DirectCopies, ABlockLivesAsLongAsRequestsMayUseIt) {
    Pool world;
    char* const block = world.block(100);
    (void)world.copies.begin_request(1);
    EXPECT_TRUE(world.copies.release(1, Pool::address(block)));
    EXPECT_NE(world.block(100), block);
    world.copies.begin_sync(1, 1);
    world.copies.finish(1, false);
    EXPECT_EQ(world.block(100), block);
}

}  // namespace
}  // namespace offpath::target
