// Sequences keep every call, fold what repeats, and stay within their limit.
#include "profile/sequence.h"

#include <gtest/gtest.h>

#include <random>

namespace offpath::profile {
namespace {

void unfold(const std::vector<Node>& nodes, std::vector<std::uint32_t>& calls) {
    for (const Node& node : nodes) {
        if (node.call != Node::loop) {
            calls.push_back(node.call);
            continue;
        }
        for (std::uint32_t i = 0; i < node.iterations; ++i)
            unfold(node.body, calls);
    }
}

std::uint64_t sum_of(const std::vector<Node>& nodes) {
    std::uint64_t sum = 0;
    for (const Node& node : nodes)
        sum += node.call == Node::loop ? sum_of(node.body) : node.times.inside;
    return sum;
}

// Appends the calls with times 1, 2, ... and checks that none is lost or moved.
Sequence recorded(const std::vector<std::uint32_t>& calls) {
    Sequence sequence;
    std::uint64_t time = 0, sum = 0;
    for (const std::uint32_t call : calls) {
        sequence.append(call, {0, ++time, 0});
        sum += time;
    }
    sequence.close();
    std::vector<std::uint32_t> found;
    unfold(sequence.nodes(), found);
    EXPECT_EQ(found, calls);
    EXPECT_EQ(sum_of(sequence.nodes()), sum);
    return sequence;
}

TEST(Sequence, ALoopTakesAsMuchAsOneIteration) {
    std::vector<std::uint32_t> calls;
    for (int i = 0; i < 1000; ++i)
        calls.insert(calls.end(), {1, 2, 3});
    const Sequence sequence = recorded(calls);
    ASSERT_EQ(sequence.nodes().size(), 1u);
    EXPECT_EQ(sequence.nodes()[0].iterations, 1000u);
    EXPECT_EQ(sequence.nodes()[0].body.size(), 3u);
    EXPECT_EQ(sequence.nodes()[0].body[1].count, 1000u);
}

TEST(Sequence, CallsWithoutComputationAreCounted) {
    Sequence sequence;
    for (std::uint64_t i = 0; i < 100; ++i)
        sequence.append(1, {i % 4 == 0 ? 0U : 500U, 1, 0, i % 4 == 0 ? 1U : 0U});
    sequence.close();
    ASSERT_EQ(sequence.nodes().size(), 1u);
    EXPECT_EQ(sequence.nodes()[0].body[0].times.bare, 25u);
    EXPECT_EQ(sequence.nodes()[0].body[0].times.compute, 75u * 500);
}

TEST(Sequence, LoopsOfLoopsAreFolded) {
    std::vector<std::uint32_t> calls{9};
    for (int outer = 0; outer < 20; ++outer) {
        calls.push_back(1);
        for (int inner = 0; inner < 7; ++inner)
            calls.insert(calls.end(), {2, 3});
        calls.push_back(4);
    }
    calls.push_back(9);
    const Sequence sequence = recorded(calls);
    ASSERT_EQ(sequence.nodes().size(), 3u);
    EXPECT_EQ(sequence.nodes()[1].iterations, 20u);
    ASSERT_EQ(sequence.nodes()[1].body.size(), 3u);
    EXPECT_EQ(sequence.nodes()[1].body[1].iterations, 7u);
    EXPECT_EQ(sequence.nodes()[1].body[1].body[0].count, 140u);
}

TEST(Sequence, AnIterationThatBreaksOffIsKept) {
    recorded({1, 2, 3, 1, 2, 3, 1, 2, 4});
    recorded({1, 2, 3, 1, 2, 3, 1, 2});
    recorded({1, 1, 1, 2, 1, 1, 2, 1, 1, 1, 2, 1});
}

TEST(Sequence, AnyOrderIsKept) {
    std::mt19937 random(1);
    for (int trial = 0; trial < 200; ++trial) {
        std::vector<std::uint32_t> calls(300);
        const std::uint32_t kinds = 2 + random() % 4;
        for (std::uint32_t& call : calls)
            call = static_cast<std::uint32_t>(random() % kinds);
        recorded(calls);
    }
}

// 10 timed iterations of calls 1, 2, 3 with times 100 and 1, 200 and 2, 300 and 3; then some without times.
Sequence with_untimed(std::size_t untimed) {
    Sequence sequence;
    for (int i = 0; i < 10; ++i)
        for (std::uint32_t call = 1; call <= 3; ++call)
            sequence.append(call, {100 * call, call, 0});
    sequence.append_untimed(untimed);
    return sequence;
}

TEST(Sequence, UntimedCallsTakeTheirShareOfTheWhole) {
    Sequence sequence = with_untimed(300);
    ASSERT_TRUE(sequence.between_iterations());
    EXPECT_DOUBLE_EQ(sequence.usual_ticks(false), 100 * 606);
    EXPECT_DOUBLE_EQ(sequence.usual_ticks(true), 100 * 606 + 100);
    EXPECT_EQ(sequence.settle(0.5, 2), 30'000u);
    sequence.close();
    ASSERT_EQ(sequence.nodes().size(), 1u);
    EXPECT_EQ(sequence.nodes()[0].iterations, 110u);
    const Node& second = sequence.nodes()[0].body[1];
    EXPECT_EQ(second.count, 110u);
    EXPECT_EQ(second.times.compute, 10u * 200 + 100 * 100);
    EXPECT_EQ(second.times.inside, 10u * 2 + 100 * 4);
}

TEST(Sequence, UntimedCallsMayEndWithinAnIteration) {
    Sequence sequence = with_untimed(5);
    EXPECT_EQ(sequence.settle(1, 1), 900u);
    sequence.append(9, {7, 7, 0});
    sequence.close();
    std::vector<std::uint32_t> found, expected;
    unfold(sequence.nodes(), found);
    for (int i = 0; i < 11; ++i)
        expected.insert(expected.end(), {1, 2, 3});
    expected.insert(expected.end(), {1, 2, 9});
    EXPECT_EQ(found, expected);
    EXPECT_EQ(sum_of(sequence.nodes()), 11u * 6 + 3 + 7);
}

TEST(Sequence, CallsBeyondTheLimitAreCounted) {
    Sequence sequence(10);
    for (std::uint32_t call = 0; call < 25; ++call)
        sequence.append(call, {});
    sequence.close();
    EXPECT_EQ(sequence.nodes().size(), 10u);
    EXPECT_EQ(sequence.lost(), 15u);
}

}  // namespace
}  // namespace offpath::profile
