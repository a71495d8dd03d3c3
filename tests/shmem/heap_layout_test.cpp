#include "heap_layout.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace offpath::shmem {
namespace {

TEST(HeapLayout, BlocksAreAlignedAndApart) {
    HeapLayout layout(1 << 20);
    const std::size_t first = layout.allocate(10), second = layout.allocate(10),
                      third = layout.allocate(10, 4096);
    EXPECT_EQ(first % HeapLayout::granularity, 0u);
    EXPECT_GE(second, first + 10);
    EXPECT_EQ(third % 4096, 0u);
    EXPECT_EQ(layout.bytes_at(first), 10u);
    EXPECT_EQ(layout.bytes_at(first + 1), 0u);
    EXPECT_EQ(layout.block_around(first + 9), std::pair(first, first + 10));
    EXPECT_EQ(layout.block_around(first + 10).first, HeapLayout::none);
}

TEST(HeapLayout, WhatDoesNotFitIsNotGiven) {
    HeapLayout layout(1000);  // 960 of them in whole blocks
    EXPECT_EQ(layout.allocate(0), HeapLayout::none);
    EXPECT_EQ(layout.allocate(961), HeapLayout::none);
    EXPECT_EQ(layout.allocate(SIZE_MAX), HeapLayout::none);
    EXPECT_EQ(layout.allocate(SIZE_MAX - 64), HeapLayout::none);
    EXPECT_EQ(layout.allocate(1, 4096), 0u);
    EXPECT_EQ(layout.allocate(1, 4096), HeapLayout::none);
    EXPECT_EQ(layout.allocate(896), 64u);
    EXPECT_EQ(layout.allocate(1), HeapLayout::none);
    EXPECT_EQ(layout.largest_free(), 0u);
}

TEST(HeapLayout, FreeNeighboursBecomeOne) {
    HeapLayout layout(640);
    std::vector<std::size_t> blocks;
    for (int i = 0; i < 10; ++i)
        blocks.push_back(layout.allocate(64));
    EXPECT_EQ(layout.allocate(1), HeapLayout::none);
    for (const int i : {1, 3, 2})
        EXPECT_TRUE(layout.free(blocks[static_cast<std::size_t>(i)]));
    EXPECT_EQ(layout.largest_free(), 192u);
    EXPECT_FALSE(layout.free(blocks[2]));
    EXPECT_FALSE(layout.free(blocks[4] + 1));
    EXPECT_EQ(layout.allocate(192), 64u);
}

TEST(HeapLayout, ResizesWithinItsRoom) {
    HeapLayout layout(1 << 10);
    const std::size_t block = layout.allocate(65);
    EXPECT_TRUE(layout.resize(block, 128));
    EXPECT_EQ(layout.bytes_at(block), 128u);
    EXPECT_FALSE(layout.resize(block, 129));
    EXPECT_FALSE(layout.resize(block, 0));
    EXPECT_FALSE(layout.resize(block + 64, 1));
}

// The layout is compared with a model that knows only which bytes are taken. A second layout gets the same
// calls.
TEST(HeapLayout, NeverGivesAByteTwiceAndAlwaysTheSame) {
    std::mt19937 random(5);
    constexpr std::size_t bytes = 1 << 16;
    HeapLayout layout(bytes), twin(bytes);
    std::map<std::size_t, std::size_t> taken;
    for (int round = 0; round < 20000; ++round) {
        if (taken.empty() || random() % 5 < 3) {
            const std::size_t size = 1 + random() % 3000, alignment = std::size_t{1} << (random() % 13);
            const std::size_t offset = layout.allocate(size, alignment);
            ASSERT_EQ(twin.allocate(size, alignment), offset);
            if (offset == HeapLayout::none) continue;
            ASSERT_EQ(offset % alignment, 0u);
            ASSERT_LE(offset + size, bytes);
            const auto next = taken.lower_bound(offset);
            ASSERT_TRUE(next == taken.end() || offset + size <= next->first);
            ASSERT_TRUE(next == taken.begin() || std::prev(next)->first + std::prev(next)->second <= offset);
            taken.emplace(offset, size);
        } else {
            const auto victim =
                std::next(taken.begin(), static_cast<std::ptrdiff_t>(random() % taken.size()));
            ASSERT_TRUE(layout.free(victim->first));
            ASSERT_TRUE(twin.free(victim->first));
            taken.erase(victim);
        }
    }
    for (const auto& [offset, size] : taken)
        ASSERT_TRUE(layout.free(offset));
    EXPECT_EQ(layout.largest_free(), bytes);
}

}  // namespace
}  // namespace offpath::shmem
