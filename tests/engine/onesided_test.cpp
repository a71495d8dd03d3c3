// Windows: puts and gets reach the right bytes, in segments, in ranges of dynamic windows and across
// neighbouring ranges. What leaves a window fails.
#include "onesided_fixture.h"

#include <deque>
#include <numeric>
#include <random>

namespace offpath::testing {
namespace {

TEST_P(OneSided, PutsAndGetsOfAllSizesReachTheRightBytes) {
    constexpr std::uint32_t ranks = 3;
    constexpr std::size_t slice = 60000;
    World world(options(ranks));
    Windows windows(world, slice * ranks);
    std::mt19937 random(2);
    std::vector<std::vector<std::byte>> expected(ranks, std::vector<std::byte>(slice * ranks));
    std::deque<std::vector<std::byte>> buffers;
    for (std::uint32_t origin = 0; origin < ranks; ++origin) {
        for (std::uint32_t target = 0; target < ranks; ++target) {
            // Each origin has its own slice of each target, so nothing is written twice.
            std::size_t at = slice * origin;
            while (at < slice * (origin + 1)) {
                const std::size_t bytes = std::min<std::size_t>(
                    1 + random() % (random() % 3 == 0 ? 30000 : 300), slice * (origin + 1) - at);
                auto& data = buffers.emplace_back(bytes);
                for (auto& byte : data)
                    byte = static_cast<std::byte>(random());
                std::copy(data.begin(), data.end(),
                          expected[target].begin() + static_cast<std::ptrdiff_t>(at));
                windows.start(origin, put(target, at, data));
                at += bytes;
                if (random() % 4 == 0) world.round();
            }
        }
    }
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
        ASSERT_EQ(windows.flush(rank), Status::ok);
    EXPECT_EQ(windows.memory, expected);
    for (std::size_t bytes : {1, 100, 4096, 4097, 50000}) {
        std::vector<std::byte> got(bytes);
        OneSidedCall call;
        call.kind = OpKind::get;
        call.target = 1;
        call.offset = 777;
        call.bytes = bytes;
        call.result = World::range(got.data(), bytes);
        Done done;
        windows.start(2, call, &done);
        ASSERT_TRUE(world.run_until([&] { return done.status.has_value(); }));
        ASSERT_EQ(*done.status, Status::ok);
        ASSERT_TRUE(std::equal(got.begin(), got.end(), expected[1].begin() + 777)) << bytes;
    }
}

TEST_P(OneSided, SegmentsAreWrittenAndReadInTheirOrder) {
    World world(options(2));
    Windows windows(world, 400000);
    std::vector<std::byte> expected(400000);
    std::vector<rma::Segment> segments;
    std::mt19937 random(4);
    std::vector<std::size_t> places(1000);
    std::iota(places.begin(), places.end(), 0);
    std::shuffle(places.begin(), places.end(), random);
    std::uint64_t bytes = 0;
    for (std::size_t place : places) {
        segments.push_back({place * 400, 1 + random() % 400});
        bytes += segments.back().bytes;
    }
    std::vector<std::byte> data(bytes), back(bytes);
    for (auto& byte : data)
        byte = static_cast<std::byte>(random());
    std::uint64_t at = 0;
    for (const rma::Segment& segment : segments) {
        std::memcpy(expected.data() + segment.offset, data.data() + at, segment.bytes);
        at += segment.bytes;
    }
    OneSidedCall call = put(1, 0, data);
    call.segments = segments;
    windows.start(0, call);
    ASSERT_EQ(windows.flush(0, 1), Status::ok);
    EXPECT_EQ(windows.memory[1], expected);
    OneSidedCall get;
    get.kind = OpKind::get;
    get.target = 1;
    get.bytes = bytes;
    get.segments = segments;
    get.result = World::range(back.data(), bytes);
    windows.start(0, get);
    ASSERT_EQ(windows.flush(0, 1), Status::ok);
    EXPECT_EQ(back, data);
}

TEST_P(OneSided, WhatLeavesTheWindowFailsAndTouchesNothing) {
    World world(options(2));
    Windows windows(world, 1000);
    std::vector<std::byte> data(600, std::byte{9});
    const std::vector<std::byte> zero(1000);
    for (std::uint64_t offset :
         {std::uint64_t{401}, std::uint64_t{1000}, std::uint64_t{5000}, UINT64_MAX - 100}) {
        Done done;
        windows.start(0, put(1, offset, data), &done);
        ASSERT_TRUE(world.run_until([&] { return done.status.has_value(); }));
        EXPECT_EQ(*done.status, Status::access);
        EXPECT_EQ(windows.flush(0), Status::access);
        EXPECT_EQ(windows.flush(0), Status::ok) << "an error is reported once";
    }
    OneSidedCall call = put(1, 0, data);
    call.segments = {{0, 300}, {800, 300}};
    Done done;
    windows.start(0, call, &done);
    ASSERT_TRUE(world.run_until([&] { return done.status.has_value(); }));
    EXPECT_EQ(*done.status, Status::access);
    EXPECT_EQ(windows.memory[1], zero);
    call.segments = {{0, 300}, {400, 400}};
    EXPECT_EQ(world.engine_of(0).one_sided(*windows.window[0], call, nullptr), Status::invalid);
}

TEST_P(OneSided, DynamicRangesComeAndGo) {
    World world(options(2));
    std::vector<engine::Window*> window(2);
    for (std::uint32_t rank = 0; rank < 2; ++rank)
        ASSERT_EQ(world.engine_of(rank).create_window(world.team(rank), 8, {}, true, &window[rank]),
                  Status::ok);
    std::vector<std::byte> memory(20000), data(20000, std::byte{7});
    const auto begin = reinterpret_cast<std::uint64_t>(memory.data());
    auto run = [&](std::uint64_t offset) {
        Done done;
        EXPECT_EQ(world.engine_of(0).one_sided(*window[0], put(1, offset, data), &done), Status::in_progress);
        EXPECT_TRUE(world.run_until([&] { return done.status.has_value(); }));
        return done.status.value_or(Status::retry);
    };
    EXPECT_EQ(run(begin), Status::access);
    ASSERT_EQ(world.engine_of(1).attach_window(*window[1], World::range(memory.data(), memory.size()), begin),
              Status::ok);
    EXPECT_EQ(run(begin), Status::ok);
    EXPECT_EQ(memory, data);
    EXPECT_EQ(run(begin + 1), Status::access);
    // A detach ends when the outstanding operations are done. No later operation is executed.
    Done written, detached;
    std::fill(data.begin(), data.end(), std::byte{8});
    ASSERT_EQ(world.engine_of(0).one_sided(*window[0], put(1, begin, data), &written), Status::in_progress);
    for (int i = 0; i < 6; ++i)
        world.round();
    const Status status = world.engine_of(1).detach_window(*window[1], begin, &detached);
    if (status == Status::in_progress) {
        ASSERT_TRUE(world.run_until([&] { return detached.status.has_value(); }));
    }
    const auto after = memory;
    ASSERT_TRUE(world.run_until([&] { return written.status.has_value(); }));
    EXPECT_EQ(memory, after) << "written after the detach";
    EXPECT_EQ(run(begin), Status::access);
}

TEST_P(OneSided, WhatSpansNeighboursReachesThemAll) {
    World world(options(2));
    std::vector<engine::Window*> window(2);
    for (std::uint32_t rank = 0; rank < 2; ++rank)
        ASSERT_EQ(world.engine_of(rank).create_window(world.team(rank), 8, {}, true, &window[rank]),
                  Status::ok);
    constexpr std::size_t first = 30001, second = 7, third = 300000, bytes = first + second + third;
    std::vector<std::byte> memory(bytes + 1), data(bytes), back(bytes);
    const auto begin = reinterpret_cast<std::uint64_t>(memory.data());
    std::uint64_t at = 0;
    for (const std::size_t length : {first, second, third}) {
        const auto range = World::range(memory.data() + at, length);
        ASSERT_EQ(world.engine_of(1).attach_window(*window[1], range, begin + at), Status::ok);
        at += length;
    }
    const auto run = [&](OneSidedCall call) {
        Done done;
        EXPECT_EQ(world.engine_of(0).one_sided(*window[0], std::move(call), &done), Status::in_progress);
        EXPECT_TRUE(world.run_until([&] { return done.status.has_value(); }));
        return done.status.value_or(Status::retry);
    };
    const auto get = [&](std::uint64_t from, std::size_t length) {
        OneSidedCall call;
        call.kind = OpKind::get;
        call.target = 1;
        call.offset = begin + from;
        call.bytes = length;
        call.result = World::range(back.data(), length);
        return run(call);
    };
    for (std::size_t i = 0; i < bytes; ++i)
        data[i] = static_cast<std::byte>(i * 31 % 251);
    EXPECT_EQ(run(put(1, begin, data)), Status::ok);
    EXPECT_TRUE(std::equal(data.begin(), data.end(), memory.begin()));
    EXPECT_EQ(get(0, bytes), Status::ok);
    EXPECT_EQ(back, data);
    // Small operations, across one border and across two.
    const std::span<const std::byte> few = std::span(data).first(20);
    EXPECT_EQ(run(put(1, begin + first - 3, few)), Status::ok);
    EXPECT_TRUE(std::equal(few.begin(), few.end(), memory.begin() + first - 3));
    EXPECT_EQ(get(first - 3, 20), Status::ok);
    EXPECT_TRUE(std::equal(few.begin(), few.end(), back.begin()));
    // A list of segments, some of which span ranges.
    OneSidedCall scattered = put(1, 0, std::span(data).first(100));
    scattered.segments = {{begin + 5, 10}, {begin + first - 5, 50}, {begin + first + second + 100, 40}};
    EXPECT_EQ(run(scattered), Status::ok);
    EXPECT_TRUE(std::equal(data.begin() + 10, data.begin() + 60, memory.begin() + first - 5));
    // The third element of this update has its bytes in two ranges.
    std::vector<std::uint64_t> ones(100, 1), before(100), after(100);
    std::memcpy(before.data(), memory.data() + first - 20, 800);
    EXPECT_EQ(run(update<std::uint64_t>(OpKind::accumulate, static_cast<std::uint8_t>(Reduction::sum),
                                        DataType::uint64, 1, begin + first - 20, ones)),
              Status::ok);
    std::memcpy(after.data(), memory.data() + first - 20, 800);
    for (std::size_t i = 0; i < 100; ++i)
        ASSERT_EQ(after[i], before[i] + 1) << i;
    // An operation that leaves the ranges is refused. So is one that spans a range that was detached.
    EXPECT_EQ(run(put(1, begin + 1, data)), Status::access);
    EXPECT_EQ(memory.back(), std::byte{0});
    Done detached;
    EXPECT_EQ(world.engine_of(1).detach_window(*window[1], begin + first, &detached), Status::ok);
    EXPECT_EQ(run(put(1, begin, data)), Status::access);
}

INSTANTIATE_TEST_SUITE_P(Memory, OneSided,
                         ::testing::Combine(::testing::Values(BackEnd::map, BackEnd::cma, BackEnd::staged),
                                            ::testing::Values(1u, 3u)));

}  // namespace
}  // namespace offpath::testing
