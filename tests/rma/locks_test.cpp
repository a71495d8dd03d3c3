#include "rma/locks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>

namespace offpath::rma {
namespace {

using Answer = LockQueue::Answer;

TEST(Locks, SharersShareAndNeverWaitForAWriterThatWaits) {
    LockQueue lock;
    EXPECT_EQ(lock.lock({0, false, 10}), Answer::granted);
    EXPECT_EQ(lock.lock({1, false, 11}), Answer::granted);
    EXPECT_EQ(lock.lock({2, true, 12}), Answer::waits);
    EXPECT_EQ(lock.lock({3, false, 13}), Answer::granted) << "0 may wait for what 3 does under its lock";
    std::vector<LockQueue::Asker> granted;
    for (std::uint32_t rank : {0u, 3u}) {
        EXPECT_TRUE(lock.unlock(rank, granted));
        EXPECT_TRUE(granted.empty());
    }
    EXPECT_TRUE(lock.unlock(1, granted));
    ASSERT_EQ(granted.size(), 1u);
    EXPECT_EQ(granted[0].token, 12u);
    granted.clear();
    EXPECT_EQ(lock.lock({0, false, 14}), Answer::waits);
    EXPECT_EQ(lock.lock({1, true, 15}), Answer::waits);
    EXPECT_EQ(lock.lock({3, false, 16}), Answer::waits);
    EXPECT_TRUE(lock.unlock(2, granted));
    ASSERT_EQ(granted.size(), 2u) << "all sharers at once";
    EXPECT_EQ(granted[0].token, 14u);
    EXPECT_EQ(granted[1].token, 16u);
    granted.clear();
    for (std::uint32_t rank : {0u, 3u})
        EXPECT_TRUE(lock.unlock(rank, granted));
    ASSERT_EQ(granted.size(), 1u);
    EXPECT_TRUE(lock.unlock(1, granted));
    EXPECT_FALSE(lock.held());
    EXPECT_EQ(lock.lock({5, false, 17}), Answer::granted);
}

TEST(Locks, RefuseWhoHasItAndWhoGivesBackWhatItHasNot) {
    LockQueue lock;
    std::vector<LockQueue::Asker> granted;
    EXPECT_EQ(lock.lock({0, false, 1}), Answer::granted);
    EXPECT_EQ(lock.lock({0, true, 2}), Answer::refused);
    EXPECT_EQ(lock.lock({1, true, 3}), Answer::waits);
    EXPECT_EQ(lock.lock({1, true, 4}), Answer::refused);
    EXPECT_FALSE(lock.unlock(1, granted));
    EXPECT_FALSE(lock.unlock(5, granted));
}

TEST(Locks, ManyAskersAllGetItOnceAndWritersInOrder) {
    std::mt19937 random(3);
    LockQueue lock;
    std::vector<std::uint32_t> holders, order;
    std::vector<bool> exclusive(200);
    for (std::uint32_t rank = 0; rank < 200; ++rank) {
        exclusive[rank] = random() % 3 == 0;
        if (lock.lock({rank, exclusive[rank], rank}) == Answer::granted) holders.push_back(rank);
    }
    while (!holders.empty()) {
        order.insert(order.end(), holders.begin(), holders.end());
        ASSERT_TRUE(holders.size() == 1 ||
                    std::none_of(holders.begin(), holders.end(), [&](auto r) { return exclusive[r]; }));
        std::vector<LockQueue::Asker> granted;
        for (std::uint32_t rank : holders)
            ASSERT_TRUE(lock.unlock(rank, granted));
        holders.clear();
        for (const auto& asker : granted)
            holders.push_back(asker.rank);
    }
    ASSERT_EQ(order.size(), 200u);
    std::vector<std::uint32_t> writers;
    std::copy_if(order.begin(), order.end(), std::back_inserter(writers),
                 [&](auto r) { return exclusive[r]; });
    EXPECT_TRUE(std::is_sorted(writers.begin(), writers.end()));
    std::sort(order.begin(), order.end());
    EXPECT_EQ(std::unique(order.begin(), order.end()), order.end());
    EXPECT_FALSE(lock.held());
}

TEST(Locks, WhoOnlyTriesLeavesNoTrace) {
    LockQueue lock;
    EXPECT_EQ(lock.try_lock({0, true}), Answer::granted);
    EXPECT_EQ(lock.try_lock({0, false}), Answer::refused);
    EXPECT_EQ(lock.try_lock({1, false}), Answer::waits);
    EXPECT_EQ(lock.try_lock({1, true}), Answer::waits) << "it does not wait already";
    std::vector<LockQueue::Asker> granted;
    EXPECT_TRUE(lock.unlock(0, granted));
    EXPECT_TRUE(granted.empty());
    EXPECT_EQ(lock.try_lock({1, false}), Answer::granted);
    EXPECT_EQ(lock.try_lock({2, false}), Answer::granted);
    EXPECT_EQ(lock.try_lock({3, true}), Answer::waits);
}

}  // namespace
}  // namespace offpath::rma
