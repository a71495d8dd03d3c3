#include "rma/locks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace offpath::rma {
namespace {

using Answer = LockQueue::Answer;

TEST(Locks, SharersShareAndAWriterComesInItsTurn) {
    LockQueue lock;
    EXPECT_EQ(lock.lock({0, false, 10}), Answer::granted);
    EXPECT_EQ(lock.lock({1, false, 11}), Answer::granted);
    EXPECT_EQ(lock.lock({2, true, 12}), Answer::waits);
    EXPECT_EQ(lock.lock({3, false, 13}), Answer::waits) << "a sharer must not overtake a writer";
    std::vector<LockQueue::Asker> granted;
    EXPECT_TRUE(lock.unlock(0, granted));
    EXPECT_TRUE(granted.empty());
    EXPECT_TRUE(lock.unlock(1, granted));
    ASSERT_EQ(granted.size(), 1u);
    EXPECT_EQ(granted[0].token, 12u);
    granted.clear();
    EXPECT_TRUE(lock.unlock(2, granted));
    ASSERT_EQ(granted.size(), 1u);
    EXPECT_EQ(granted[0].token, 13u);
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

TEST(Locks, ManyAskersAllGetItOnceInOrder) {
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
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
    EXPECT_FALSE(lock.held());
}

}  // namespace
}  // namespace offpath::rma
