#include "collectives/patterns/binomial_tree.h"
#include "collectives/patterns/dissemination.h"
#include "collectives/patterns/pairwise.h"
#include "collectives/patterns/ring.h"
#include "collectives/patterns/segments.h"

#include <gtest/gtest.h>

#include <set>

namespace offpath::collectives {
namespace {

TEST(Patterns, PairwiseGivesEveryRankOneSenderAStep) {
    for (std::uint32_t size = 1; size <= 64; ++size)
        for (std::uint32_t step = 1; step < size; ++step) {
            std::set<std::uint32_t> targets;
            for (std::uint32_t rank = 0; rank < size; ++rank) {
                const std::uint32_t target = Pairwise{rank, size}.target(step);
                EXPECT_NE(target, rank);
                EXPECT_EQ((Pairwise{target, size}.source(step)), rank);
                targets.insert(target);
            }
            EXPECT_EQ(targets.size(), size);
        }
}

TEST(Patterns, RingPassesOnWhatCameBefore) {
    for (std::uint32_t size = 2; size <= 64; ++size)
        for (std::uint32_t rank = 0; rank < size; ++rank) {
            const Ring ring{rank, size}, previous{ring.previous(), size};
            EXPECT_EQ(previous.next(), rank);
            EXPECT_EQ(ring.sent_block(0), rank);
            std::set<std::uint32_t> seen{rank};
            for (std::uint32_t step = 0; step < ring.steps(); ++step) {
                EXPECT_EQ(ring.received_block(step), previous.sent_block(step));
                EXPECT_EQ(ring.received_block(step), ring.sent_block(step + 1));
                seen.insert(ring.received_block(step));
            }
            EXPECT_EQ(seen.size(), size);
        }
}

TEST(Patterns, BinomialTreeSpansTheTeamInLogarithmicDepth) {
    for (std::uint32_t size = 1; size <= 64; ++size)
        for (std::uint32_t root = 0; root < size; ++root) {
            std::uint32_t edges = 0;
            for (std::uint32_t rank = 0; rank < size; ++rank) {
                for (std::uint32_t child : BinomialTree{rank, size, root}.children()) {
                    EXPECT_EQ((BinomialTree{child, size, root}.parent()), rank);
                    ++edges;
                }
                std::uint32_t depth = 0;
                for (BinomialTree at{rank, size, root}; !at.is_root(); at.rank = at.parent())
                    ASSERT_LE(++depth, 6u);
            }
            EXPECT_EQ(edges, size - 1);
        }
}

TEST(Patterns, DisseminationTellsEverybodyInTheFewestRounds) {
    for (std::uint32_t size = 1; size <= 64; ++size) {
        const std::uint32_t rounds = Dissemination{0, size}.rounds();
        EXPECT_GE(1u << rounds, size);
        EXPECT_TRUE(rounds == 0 || 1u << (rounds - 1) < size);
        std::vector<std::set<std::uint32_t>> heard(size);
        for (std::uint32_t rank = 0; rank < size; ++rank)
            heard[rank].insert(rank);
        for (std::uint32_t round = 0; round < rounds; ++round) {
            const auto before = heard;
            for (std::uint32_t rank = 0; rank < size; ++rank)
                heard[Dissemination{rank, size}.target(round)].insert(before[rank].begin(),
                                                                      before[rank].end());
        }
        for (const auto& ranks : heard)
            EXPECT_EQ(ranks.size(), size);
    }
}

TEST(Patterns, SegmentsCoverABlockOnce) {
    for (std::uint64_t bytes : {0, 1, 9, 10, 11, 100})
        for (std::uint64_t step : {0, 1, 3, 10, 1000}) {
            const Segments segments{bytes, step};
            std::uint64_t at = 0;
            for (std::uint64_t i = 0; i < segments.count(); ++i) {
                EXPECT_EQ(segments.offset(i), at);
                EXPECT_GT(segments.size(i), 0u);
                at += segments.size(i);
            }
            EXPECT_EQ(at, bytes);
        }
    EXPECT_EQ((Segments{10, 0}.count()), 1u);
    EXPECT_EQ((Segments{10, 3}.count()), 4u);
    EXPECT_EQ((Segments{10, 3}.size(3)), 1u);
}

}  // namespace
}  // namespace offpath::collectives
