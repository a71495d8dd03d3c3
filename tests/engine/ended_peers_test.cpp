// What an engine keeps of peers whose jobs have ended.
#include "engine/mover/ended_peers.h"

#include <gtest/gtest.h>

namespace offpath::testing {
namespace {

using engine::EndedPeers;
constexpr std::uint64_t least = 1000;

// Passes that follow each other, and so do the slots where searches begin.
engine::Peer peer(std::uint64_t pass, engine::Way* way = nullptr, bool lost = false) {
    engine::Peer made;
    made.pass_here = pass;
    made.pass_there = ~pass;
    made.way = way;
    made.lost = lost;
    return made;
}

TEST(EndedPeers, NobodyIsKnownAtFirst) {
    EndedPeers ended(least);
    EXPECT_EQ(ended.find(0), nullptr);
    EXPECT_EQ(ended.find(1), nullptr);
    ended.remember(peer(2));
    EXPECT_EQ(ended.find(0), nullptr);
    EXPECT_EQ(ended.find(1), nullptr);
}

TEST(EndedPeers, TheYoungestAreKnownAndTheOldestForgotten) {
    EndedPeers ended(least);
    const std::uint64_t last = 10 * least + least / 3;
    for (std::uint64_t pass = 1; pass <= last; ++pass) {
        ended.remember(peer(pass, nullptr, pass % 3 == 0));
        if (pass > least) {
            ASSERT_NE(ended.find(pass - least + 1), nullptr) << pass;
        }
    }
    for (std::uint64_t pass = last - least + 1; pass <= last; ++pass) {
        const EndedPeers::Record* known = ended.find(pass);
        ASSERT_NE(known, nullptr) << pass;
        EXPECT_EQ(known->pass_there, ~pass);
        EXPECT_EQ(known->lost, pass % 3 == 0);
    }
    for (std::uint64_t pass = 1; pass <= last - 2 * least; ++pass)
        ASSERT_EQ(ended.find(pass), nullptr) << pass;
}

// Searches for all of them begin at the last slot.
TEST(EndedPeers, ManyMayBeginAtOneSlot) {
    constexpr std::uint64_t slots = 2 * least;
    EndedPeers ended(least);
    for (std::uint64_t i = 1; i <= 50; ++i)
        ended.remember(peer(i * slots - 1));
    for (std::uint64_t i = 1; i <= 50; ++i)
        EXPECT_NE(ended.find(i * slots - 1), nullptr);
    EXPECT_EQ(ended.find(51 * slots - 1), nullptr);
}

TEST(EndedPeers, OneIsKnownAtLeast) {
    EndedPeers ended(0);
    ended.remember(peer(1));
    EXPECT_NE(ended.find(1), nullptr);
}

TEST(EndedPeers, APeerThatEndsAgainHasItsNewState) {
    EndedPeers ended(least);
    ended.remember(peer(7));
    ended.remember(peer(7, nullptr, true));
    EXPECT_TRUE(ended.find(7)->lost);
    for (std::uint64_t pass = 100; pass < 100 + least; ++pass)
        ended.remember(peer(pass));
    ended.remember(peer(7));
    EXPECT_FALSE(ended.find(7)->lost);
}

// A way that is lost stays while records need its address.
TEST(EndedPeers, WaysCountTheirRecords) {
    EndedPeers ended(least);
    engine::Way first, second;
    ended.remember(peer(1, &first));
    ended.remember(peer(2, &first));
    EXPECT_EQ(first.ended_peers, 2u);
    ended.remember(peer(2, &second));
    EXPECT_EQ(first.ended_peers, 1u);
    EXPECT_EQ(second.ended_peers, 1u);
    EndedPeers::lead(*ended.find(1), &second);
    EXPECT_EQ(first.ended_peers, 0u);
    EXPECT_EQ(second.ended_peers, 2u);
    for (std::uint64_t pass = 100; pass < 100 + 3 * least; ++pass)
        ended.remember(peer(pass));
    EXPECT_EQ(second.ended_peers, 0u);
}

}  // namespace
}  // namespace offpath::testing
