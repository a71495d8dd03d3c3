// Windows: puts, gets, updates, locks and flushes, over every kind of memory and a fabric that reorders. Also
// ranges out of bounds, and the loss of a rank or proxy.
#include "engine/impl.h"
#include "windows.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace offpath::testing {
namespace {

using engine::OneSidedCall;
using memory::BackEnd;
using rma::OpKind;
using schedule::DataType;
using schedule::Reduction;

class OneSided : public ::testing::TestWithParam<std::tuple<BackEnd, std::uint32_t>> {
  protected:
    WorldOptions options(std::uint32_t ranks) const {
        WorldOptions made;
        made.ranks = ranks;
        made.memory = std::get<0>(GetParam());
        made.proxies = std::min(ranks, std::get<1>(GetParam()));
        made.engine.round_pieces = 300;
        made.faults = transport::FaultPlan{.seed = 5, .delay_message = 0.4, .delay_completion = 0.2};
        return made;
    }
};

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

TEST_P(OneSided, UpdatesFromAllRanksAddUpAndFetchedValuesAreTickets) {
    constexpr std::uint32_t ranks = 4;
    constexpr std::size_t rounds = 50, wide = 3000;
    World world(options(ranks));
    Windows windows(world, 8 + wide * 8);
    const std::vector<std::uint64_t> ones(wide, 1);
    std::vector<std::uint64_t> tickets(ranks * rounds, UINT64_MAX);
    for (std::size_t i = 0; i < rounds; ++i) {
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
            windows.start(
                rank, update<std::uint64_t>(OpKind::get_accumulate, static_cast<std::uint8_t>(Reduction::sum),
                                            DataType::uint64, 2, 0, std::span(ones).first(1),
                                            &tickets[rank * rounds + i]));
            if (i % 10 == 0)
                windows.start(
                    rank, update<std::uint64_t>(OpKind::accumulate, static_cast<std::uint8_t>(Reduction::sum),
                                                DataType::uint64, 2, 8, ones));
            if ((i + rank) % 3 == 0) world.round();
        }
    }
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
        ASSERT_EQ(windows.flush(rank), Status::ok);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        const auto first = tickets.begin() + static_cast<std::ptrdiff_t>(rank * rounds);
        EXPECT_TRUE(std::is_sorted(first, first + rounds)) << "updates of one rank were reordered";
    }
    std::sort(tickets.begin(), tickets.end());
    for (std::size_t i = 0; i < tickets.size(); ++i)
        ASSERT_EQ(tickets[i], i);
    std::vector<std::uint64_t> sums(1 + wide);
    std::memcpy(sums.data(), windows.memory[2].data(), sums.size() * 8);
    EXPECT_EQ(sums[0], ranks * rounds);
    for (std::size_t i = 1; i <= wide; ++i)
        ASSERT_EQ(sums[i], ranks * rounds / 10);
}

TEST_P(OneSided, UpdatesOfOneRankKeepTheirOrderWhateverTheirSize) {
    World world(options(2));
    constexpr std::size_t wide = 40000;
    Windows windows(world, wide * 4);
    std::deque<std::vector<std::uint32_t>> values;
    std::mt19937 random(8);
    for (std::uint32_t i = 1; i <= 30; ++i) {
        const auto& value = values.emplace_back(i % 3 == 0 ? wide : 1 + random() % 2000, i);
        windows.start(0,
                      update<std::uint32_t>(OpKind::accumulate, rma::replace, DataType::uint32, 1, 0, value));
        if (i % 4 == 0) world.round();
    }
    ASSERT_EQ(windows.flush(0), Status::ok);
    std::vector<std::uint32_t> found(wide), expected(wide);
    std::memcpy(found.data(), windows.memory[1].data(), wide * 4);
    for (const auto& value : values)
        std::copy(value.begin(), value.end(), expected.begin());
    EXPECT_EQ(found, expected);
}

TEST_P(OneSided, CompareSwapLetsOneWin) {
    constexpr std::uint32_t ranks = 5;
    World world(options(ranks));
    Windows windows(world, 64);
    std::vector<std::int32_t> found(ranks, -1);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        const std::int32_t both[2] = {static_cast<std::int32_t>(rank + 1), 0};
        OneSidedCall call = put(3, 16, std::as_bytes(std::span(both)));
        call.kind = OpKind::compare_swap;
        call.type = static_cast<std::uint8_t>(DataType::int32);
        call.bytes = 4;
        call.result = World::range(&found[rank], 4);
        windows.start(rank, call);
    }
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
        ASSERT_EQ(windows.flush(rank), Status::ok);
    std::int32_t value = 0;
    std::memcpy(&value, windows.memory[3].data() + 16, 4);
    EXPECT_EQ(std::count(found.begin(), found.end(), 0), 1);
    EXPECT_EQ(std::count(found.begin(), found.end(), value), ranks - 1);
    ASSERT_GE(value, 1);
    EXPECT_EQ(found[static_cast<std::size_t>(value - 1)], 0);
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

// However many ranks ask at once, their operands and results take a bounded amount of memory at the owner.
TEST_P(OneSided, MemoryAtTheOwnerIsBounded) {
    constexpr std::size_t bytes = 128 << 10, rounds = 12;
    for (const std::uint64_t most : {std::uint64_t{1}, std::uint64_t{300000}}) {
        WorldOptions bounded = options(3);
        bounded.engine.visit_bytes = most;
        World world(bounded);
        Windows windows(world, bytes);
        const std::vector<std::uint64_t> ones(bytes / 8, 1);
        std::vector<std::vector<std::uint64_t>> before(3, std::vector<std::uint64_t>(bytes / 8));
        const auto sum = static_cast<std::uint8_t>(Reduction::sum);
        for (std::size_t i = 0; i < rounds; ++i) {
            for (std::uint32_t rank = 0; rank < 3; ++rank) {
                const bool fetches = i == rounds - 1;
                windows.start(rank, update(fetches ? OpKind::get_accumulate : OpKind::accumulate, sum,
                                           DataType::uint64, 0, 0, std::span<const std::uint64_t>(ones),
                                           fetches ? before[rank].data() : nullptr));
            }
        }
        for (std::uint32_t rank = 0; rank < 3; ++rank)
            ASSERT_EQ(windows.flush(rank), Status::ok);
        std::vector<std::uint64_t> value(bytes / 8);
        std::memcpy(value.data(), windows.memory[0].data(), bytes);
        EXPECT_EQ(value, std::vector<std::uint64_t>(bytes / 8, rounds * 3));
        for (const auto& each : before) {
            // Updates of one rank are applied in their order, so its last one sees all of its own.
            EXPECT_GE(each[0], rounds - 1);
            EXPECT_LT(each[0], rounds * 3);
        }
        EXPECT_GE(world.engine_of(0).counters().most_visit_bytes, bytes);
        EXPECT_LE(world.engine_of(0).counters().most_visit_bytes, std::max<std::uint64_t>(most, 2 * bytes));
    }
}

TEST_P(OneSided, ExclusiveLocksProtectReadModifyWrite) {
    constexpr std::uint32_t ranks = 3, rounds = 10;
    World world(options(ranks));
    Windows windows(world, 8);
    // Every rank does this, all at once: lock, get, put the value plus one, flush, unlock.
    struct Worker {
        std::uint32_t step = 0, round = 0;
        std::uint64_t value = 0;
        std::unique_ptr<Done> done;
    };
    std::vector<Worker> workers(ranks);
    std::uint32_t holders = 0;
    auto go = [&](std::uint32_t rank) {
        Worker& worker = workers[rank];
        if (worker.round == rounds || (worker.done && !worker.done->status)) return;
        if (worker.done) {
            ASSERT_EQ(*worker.done->status, Status::ok);
        }
        worker.done = std::make_unique<Done>();
        OneSidedCall call;
        call.target = 1;
        switch (worker.step++) {
            case 0:
                call.kind = OpKind::lock_exclusive;
                break;
            case 1:
                ASSERT_EQ(++holders, 1u) << "two ranks hold the lock";
                call.kind = OpKind::get;
                call.bytes = 8;
                call.result = World::range(&worker.value, 8);
                break;
            case 2:
                ++worker.value;
                call = put(1, 0, std::as_bytes(std::span(&worker.value, 1)));
                break;
            default:
                --holders;
                call.kind = OpKind::unlock;
                worker.step = 0;
                ++worker.round;
        }
        windows.start(rank, call, worker.done.get());
    };
    ASSERT_TRUE(world.run_until([&] {
        bool over = true;
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
            go(rank);
            over &= workers[rank].round == rounds && workers[rank].done->status.has_value();
        }
        return over;
    }));
    std::uint64_t value = 0;
    std::memcpy(&value, windows.memory[1].data(), 8);
    EXPECT_EQ(value, ranks * rounds);
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

TEST_P(OneSided, DestroyWaitsForWhatTouchesTheMemory) {
    World world(options(2));
    Windows windows(world, 100000);
    std::vector<std::byte> data(100000, std::byte{5});
    Done written, ended;
    windows.start(0, put(1, 0, data), &written);
    for (int i = 0; i < 5; ++i)
        world.round();
    ASSERT_EQ(world.engine_of(1).destroy_window(*windows.window[1], &ended), Status::in_progress);
    ASSERT_TRUE(world.run_until([&] { return ended.status.has_value(); }));
    const auto after = windows.memory[1];
    ASSERT_TRUE(world.run_until([&] { return written.status.has_value(); }));
    for (int i = 0; i < 50; ++i)
        world.round();
    EXPECT_EQ(windows.memory[1], after) << "written after the window's end";
}

// Puts and updates of all sizes, then an ordered flag and a put, checked in every round: if one of the two is
// visible, so is everything before them.
TEST_P(OneSided, WhatIsOrderedAndWhatFollowsComeAfterAllBefore) {
    constexpr std::size_t wide = 30000;
    World world(options(2));
    Windows windows(world, 2 * wide + 24);
    std::mt19937 random(11);
    for (std::uint8_t round = 1; round <= 12; ++round) {
        const std::vector<std::byte> before(1 + random() % wide, std::byte{round});
        const std::vector<std::byte> after(1 + random() % 4000, std::byte{round});
        const std::vector<std::uint64_t> word(1, round);
        std::uint64_t former = 0;
        windows.start(0, put(1, 0, before));
        windows.start(0, update<std::uint64_t>(OpKind::accumulate, static_cast<std::uint8_t>(Reduction::sum),
                                               DataType::uint64, 1, 2 * wide + 8, word));
        OneSidedCall flag = round % 2 == 0
                                ? put(1, 2 * wide, std::as_bytes(std::span(word)))
                                : update<std::uint64_t>(OpKind::get_accumulate, rma::replace,
                                                        DataType::uint64, 1, 2 * wide, word, &former);
        flag.ordered = true;
        windows.start(0, flag);
        windows.start(0, put(1, wide, after));
        const std::byte* const memory = windows.memory[1].data();
        const auto value = [&](std::size_t at) {
            std::uint64_t found = 0;
            std::memcpy(&found, memory + at, 8);
            return found;
        };
        Done done;
        ASSERT_EQ(world.engine_of(0).flush_window(*windows.window[0], 1, &done), Status::in_progress);
        ASSERT_TRUE(world.run_until([&] {
            if (value(2 * wide) == round || memory[wide] == std::byte{round}) {
                EXPECT_TRUE(std::all_of(memory, memory + before.size(), [&](std::byte byte) {
                    return byte == std::byte{round};
                })) << "a put was overtaken";
                EXPECT_EQ(value(2 * wide + 8), round * (round + 1u) / 2) << "an update was overtaken";
            }
            return done.status.has_value();
        }));
        ASSERT_EQ(*done.status, Status::ok);
        EXPECT_EQ(memory[wide + after.size() - 1], std::byte{round});
        if (round % 2 != 0) {
            EXPECT_EQ(former, round - 1u);
        }
    }
}

TEST_P(OneSided, WhatIsHeldBackEndsWithItsOriginOrItsWindow) {
    for (const int rounds : {1, 4, 9, 30}) {
        for (const bool origin_goes : {true, false}) {
            World world(options(3));
            Windows windows(world, 100000);
            std::vector<std::byte> data(90000, std::byte{5}), small(100, std::byte{6});
            for (int i = 0; i < 4; ++i) {
                windows.start(2, put(1, 0, data));
                OneSidedCall flag = put(1, 95000, small);
                flag.ordered = true;
                windows.start(2, flag);
                windows.start(2, put(1, 96000, small));
            }
            for (int i = 0; i < rounds; ++i)
                world.round();
            const std::uint32_t goes = origin_goes ? 2 : 1, stays = origin_goes ? 1 : 2;
            ASSERT_TRUE(world.run_until(
                [&] { return world.engine_of(goes).close_session(world.session(goes), Status::peer_lost); }));
            Done ended;
            ASSERT_EQ(world.engine_of(stays).destroy_window(*windows.window[stays], &ended),
                      Status::in_progress);
            EXPECT_TRUE(world.run_until([&] { return ended.status.has_value(); }))
                << "after " << rounds << " rounds";
        }
    }
}

TEST_P(OneSided, ARankThatGoesEndsWhatWaitsForIt) {
    World world(options(3));
    Windows windows(world, 100000);
    Done held, waiting, lost;
    OneSidedCall lock;
    lock.kind = OpKind::lock_exclusive;
    lock.target = 0;
    windows.start(2, lock, &held);
    ASSERT_TRUE(world.run_until([&] { return held.status.has_value(); }));
    windows.start(1, lock, &waiting);
    std::vector<std::byte> data(100000, std::byte{5});
    for (int i = 0; i < 20; ++i)
        world.round();
    ASSERT_FALSE(waiting.status.has_value());
    windows.start(1, put(2, 0, data), &lost);
    while (!world.engine_of(2).close_session(world.session(2), Status::peer_lost))
        world.round();
    ASSERT_TRUE(world.run_until([&] { return waiting.status.has_value() && lost.status.has_value(); }));
    EXPECT_EQ(*waiting.status, Status::peer_lost);
    EXPECT_TRUE(is_error(*lost.status));
    EXPECT_TRUE(is_error(windows.flush(1)));
    EXPECT_EQ(world.engine_of(1).one_sided(*windows.window[1], put(2, 0, data), nullptr), Status::peer_lost);
    // The other ranks continue.
    std::vector<std::byte> small(100, std::byte{6});
    windows.start(1, put(0, 50, small));
    EXPECT_EQ(windows.flush(1), Status::ok);
    EXPECT_EQ(windows.memory[0][50], std::byte{6});
}

// A rank that dies had more operations to one target than may be outstanding. The target discards all of
// them.
TEST_P(OneSided, ADeadRanksQueueHoldsNothingBack) {
    for (const int rounds : {0, 1, 10, 100}) {
        World world(options(3));
        Windows windows(world, 128 << 10);
        const std::vector<std::uint64_t> ones((128 << 10) / 8, 1);
        const auto sum = static_cast<std::uint8_t>(Reduction::sum);
        for (int i = 0; i < 80; ++i)
            windows.start(2, update(OpKind::accumulate, sum, DataType::uint64, 1, 0,
                                    std::span<const std::uint64_t>(ones)));
        for (int i = 0; i < rounds; ++i)
            world.round();
        ASSERT_TRUE(world.run_until(
            [&] { return world.engine_of(2).close_session(world.session(2), Status::peer_lost); }));
        Done ended;
        ASSERT_EQ(world.engine_of(1).destroy_window(*windows.window[1], &ended), Status::in_progress);
        EXPECT_TRUE(world.run_until([&] { return ended.status.has_value(); }))
            << "after " << rounds << " rounds";
    }
}

// The origin can no longer read its operands. The owner stops waiting for them.
TEST_P(OneSided, OperandsThatCannotBeReadHoldNothingBack) {
    if (std::get<0>(GetParam()) == BackEnd::map) GTEST_SKIP() << "that memory is read through a pointer";
    World world(options(2));
    Windows windows(world, 20000);
    const std::vector<std::uint64_t> ones(2500, 1);
    const auto sum = static_cast<std::uint8_t>(Reduction::sum);
    windows.start(
        0, update(OpKind::accumulate, sum, DataType::uint64, 1, 0, std::span<const std::uint64_t>(ones)));
    windows.start(0, put(1, 0, std::as_bytes(std::span(ones))));
    world.memory(0).forbid();
    EXPECT_EQ(windows.flush(0), Status::access);
    // Later operations in the lane are done all the same.
    windows.start(0, update(OpKind::accumulate, sum, DataType::uint64, 1, 0,
                            std::span<const std::uint64_t>(ones).first(2)));
    EXPECT_EQ(windows.flush(0), Status::ok);
    std::uint64_t value = 0;
    std::memcpy(&value, windows.memory[1].data(), 8);
    EXPECT_EQ(value, 1u);
    Done ended;
    ASSERT_EQ(world.engine_of(1).destroy_window(*windows.window[1], &ended), Status::in_progress);
    EXPECT_TRUE(world.run_until([&] { return ended.status.has_value(); }));
}

TEST_P(OneSided, ALockOfALostProxysRankIsNotWaitedFor) {
    if (std::get<1>(GetParam()) == 1) GTEST_SKIP() << "all ranks have the same proxy";
    World world(options(3));
    Windows windows(world, 100);
    OneSidedCall lock;
    lock.kind = OpKind::lock_exclusive;
    lock.target = 0;
    Done held, asked;
    windows.start(2, lock, &held);
    ASSERT_TRUE(world.run_until([&] { return held.status.has_value(); }));
    world.kill_proxy(2);
    world.run_until([] { return false; });
    windows.start(1, lock, &asked);
    ASSERT_TRUE(world.run_until([&] { return asked.status.has_value(); }));
    EXPECT_EQ(*asked.status, Status::peer_lost);
}

INSTANTIATE_TEST_SUITE_P(Memory, OneSided,
                         ::testing::Combine(::testing::Values(BackEnd::map, BackEnd::cma, BackEnd::staged),
                                            ::testing::Values(1u, 3u)));

TEST(OneSidedBundles, SmallOnesOfARoundTravelTogether) {
    WorldOptions options;
    options.memory = BackEnd::map;
    World world(options);
    Windows windows(world, 4096);
    std::array<std::uint64_t, 64> words{}, back{};
    std::iota(words.begin(), words.end(), 100u);
    const auto sent = [&] {
        return world.engine_of(0).counters().messages_sent + world.engine_of(1).counters().messages_sent;
    };
    const std::uint64_t before = sent();
    for (std::size_t i = 0; i < words.size(); ++i)
        windows.start(0, put(1, 8 * i, std::as_bytes(std::span(&words[i], 1))));
    ASSERT_EQ(windows.flush(0), Status::ok);
    for (std::size_t i = 0; i < words.size(); ++i) {
        OneSidedCall get = put(1, 8 * i, {});
        get.kind = OpKind::get;
        get.bytes = 8;
        get.result = World::range(&back[i], 8);
        windows.start(0, get);
    }
    ASSERT_EQ(windows.flush(0), Status::ok);
    EXPECT_EQ(back, words);
    // 64 requests fit into one message of 8 KiB, or into two.
    EXPECT_LE(sent() - before, 8u);
}

// This also holds if the transport has the messages fetched, and delivers them late.
TEST(OneSidedBundles, OfLargerOnesHaveManyToo) {
    for (const std::size_t eager : {std::size_t{1} << 20, std::size_t{4} << 10}) {
        WorldOptions options;
        options.memory = BackEnd::map;
        options.loopback.eager_bytes = eager;
        options.faults = transport::FaultPlan{.seed = 9, .delay_message = 0.3, .delay_completion = 0.3};
        World world(options);
        constexpr std::size_t count = 64, size = 4096;
        Windows windows(world, count * size);
        std::vector<std::uint32_t> data(count * size / 4), back(data.size());
        std::iota(data.begin(), data.end(), 1u);
        const auto sent = [&] {
            return world.engine_of(0).counters().messages_sent + world.engine_of(1).counters().messages_sent;
        };
        const std::uint64_t before = sent();
        const auto bytes = std::as_bytes(std::span(data));
        for (std::size_t i = 0; i < count; ++i) {
            const auto now = bytes.subspan(i * size, size);
            OneSidedCall call = put(1, i * size, {});
            call.bytes = size;
            call.inlined.assign(now.begin(), now.end());
            windows.start(0, call);
        }
        ASSERT_EQ(windows.flush(0), Status::ok);
        EXPECT_EQ(std::memcmp(windows.memory[1].data(), data.data(), count * size), 0);
        for (std::size_t i = 0; i < count; ++i) {
            OneSidedCall get = put(1, i * size, {});
            get.kind = OpKind::get;
            get.bytes = size;
            get.result = World::range(back.data() + i * size / 4, size);
            windows.start(0, get);
        }
        ASSERT_EQ(windows.flush(0), Status::ok);
        EXPECT_EQ(back, data);
        // One message carries 14 of them, in both directions.
        EXPECT_LE(sent() - before, 24u) << eager;
    }
}

TEST(OneSidedBundles, NonsenseIsDropped) {
    WorldOptions options;
    options.memory = BackEnd::map;
    World world(options);
    Windows windows(world, 64);
    const auto stranger = world.stranger();
    transport::Endpoint* endpoint = nullptr;
    ASSERT_EQ(stranger->connect(world.address_of(1), &endpoint), Status::ok);
    std::mt19937 random(3);
    for (int i = 0; i < 3000; ++i) {
        std::vector<std::byte> payload(random() % 300);
        for (auto& byte : payload)
            byte = static_cast<std::byte>(random() % 3 == 0 ? random() : 0);
        engine::OneSidedBundle header{engine::Kind::one_sided_bundle, static_cast<std::uint32_t>(i % 5)};
        if (i % 7 == 0) header.messages = UINT32_MAX;
        if (payload.size() >= 8) {
            const engine::Bundled sizes{static_cast<std::uint16_t>(i % 2 == 0 ? 16 : random() % 200),
                                        static_cast<std::uint16_t>(random() % 100)};
            std::memcpy(payload.data(), &sizes, sizeof sizes);
            const auto kind = static_cast<std::uint32_t>(40 + random() % 3);
            std::memcpy(payload.data() + 4, &kind, sizeof kind);
        }
        ASSERT_EQ(stranger->post(*endpoint, World::stamped(1, 2, engine::bytes_of(header)), payload),
                  Status::ok);
        world.round();
    }
    EXPECT_EQ(windows.memory[1], std::vector<std::byte>(64));
    const std::uint64_t word = 7;
    windows.start(0, put(1, 0, std::as_bytes(std::span(&word, 1))));
    EXPECT_EQ(windows.flush(0), Status::ok);
    EXPECT_EQ(std::memcmp(windows.memory[1].data(), &word, 8), 0);
}

TEST(OneSidedAtOnce, SpansNeighbours) {
    WorldOptions options;
    options.ranks = 2;
    options.memory = BackEnd::map;
    World world(options);
    engine::Window* window = nullptr;
    ASSERT_EQ(world.engine_of(1).create_window(world.team(1), 3, {}, true, &window), Status::ok);
    std::vector<std::uint32_t> memory(16);
    const auto begin = reinterpret_cast<std::uint64_t>(memory.data());
    ASSERT_EQ(world.engine_of(1).attach_window(*window, World::range(memory.data(), 30), begin), Status::ok);
    const auto rest = World::range(reinterpret_cast<std::byte*>(memory.data()) + 30, 34);
    ASSERT_EQ(world.engine_of(1).attach_window(*window, rest, begin + 30), Status::ok);
    engine::DirectAccess call;
    call.job = {7, 9};
    call.team = 42;
    call.window = 3;
    call.target = 1;
    std::span<const std::byte> result;
    const auto at_once = [&](OpKind kind, std::uint64_t element, std::span<const std::uint32_t> operands) {
        call.kind = kind;
        call.offset = begin + 4 * element;
        call.operands = std::as_bytes(operands);
        call.bytes = call.operands.empty() ? 12 : call.operands.size();
        return world.engine_of(1).one_sided_at_once(call, result);
    };
    const std::vector<std::uint32_t> values = {5, 6, 7}, expected = {5, 12, 14};
    EXPECT_EQ(at_once(OpKind::put, 6, values), Status::ok);
    EXPECT_EQ(memory[7], 6u);
    call.type = static_cast<std::uint8_t>(DataType::uint32);
    call.reduction = static_cast<std::uint8_t>(Reduction::sum);
    EXPECT_EQ(at_once(OpKind::accumulate, 7, std::span(values).subspan(1)), Status::ok);
    EXPECT_EQ(at_once(OpKind::get, 6, {}), Status::ok);
    EXPECT_TRUE(std::ranges::equal(result, std::as_bytes(std::span(expected))));
    EXPECT_EQ(at_once(OpKind::put, 14, values), Status::access);
    // The elements are a stride apart: in both ranges, and the last one beside them.
    call.element = 4;
    call.stride = 16;
    EXPECT_EQ(at_once(OpKind::put, 3, values), Status::ok);
    EXPECT_EQ(memory[3] + memory[7] + memory[11], 18u);
    EXPECT_EQ(at_once(OpKind::put, 8, values), Status::access);
    EXPECT_EQ(memory[12], 0u);
}

TEST(OneSidedAtOnce, DoesWhatItCanAndRefusesTheRest) {
    for (const BackEnd back_end : {BackEnd::map, BackEnd::cma}) {
        WorldOptions options;
        options.ranks = 2;
        options.memory = back_end;
        World world(options);
        Windows windows(world, 4096);
        engine::DirectAccess call;
        call.job = {7, 9};
        call.team = 42;
        call.window = 3;
        call.target = 1;
        const auto at_once = [&](OpKind kind, std::uint64_t offset, std::span<const std::byte> operands,
                                 std::uint64_t bytes, std::span<const std::byte>& result) {
            call.kind = kind;
            call.offset = offset;
            call.bytes = bytes;
            call.operands = operands;
            return world.engine_of(1).one_sided_at_once(call, result);
        };
        std::span<const std::byte> result;
        const std::uint64_t word = 40, more = 2;
        const auto operand = std::as_bytes(std::span(&word, 1)), second = std::as_bytes(std::span(&more, 1));
        auto* const there = reinterpret_cast<std::uint64_t*>(windows.memory[1].data());
        // These requests are out of range, or malformed.
        EXPECT_EQ(at_once(OpKind::put, 4090, operand, 8, result), Status::access);
        EXPECT_EQ(at_once(OpKind::put, 0, operand, 9, result), Status::protocol);
        EXPECT_EQ(at_once(OpKind::get, 0, operand, 8, result), Status::protocol);
        EXPECT_EQ(at_once(OpKind::put, 0, {}, 0, result), Status::protocol);
        EXPECT_EQ(at_once(OpKind::lock_shared, 0, operand, 8, result), Status::protocol);
        EXPECT_EQ(at_once(static_cast<OpKind>(99), 0, operand, 8, result), Status::protocol);
        EXPECT_EQ(at_once(OpKind::accumulate, 0, operand, 8, result), Status::protocol) << "no type";
        call.window = 4;
        EXPECT_EQ(at_once(OpKind::put, 0, operand, 8, result), Status::access);
        call.window = 3;
        call.job.low ^= 1;
        EXPECT_EQ(at_once(OpKind::put, 0, operand, 8, result), Status::access) << "another job";
        call.job.low ^= 1;
        EXPECT_EQ(*there, 0u);
        // A lock belongs to the rank that the call names as its origin.
        const auto lock = [&](OpKind kind, std::uint32_t origin) {
            call.origin = call.origin_job = origin;
            return at_once(kind, 0, {}, 0, result);
        };
        call.origin = 1;
        EXPECT_EQ(at_once(OpKind::lock_shared, 0, {}, 0, result), Status::protocol) << "another rank's name";
        EXPECT_EQ(lock(OpKind::lock_shared, 2), Status::protocol) << "no rank of the team";
        EXPECT_EQ(lock(OpKind::lock_exclusive, 0), Status::ok);
        EXPECT_EQ(lock(OpKind::lock_exclusive, 0), Status::invalid) << "has it already";
        EXPECT_EQ(lock(OpKind::lock_shared, 1), Status::retry);
        EXPECT_EQ(lock(OpKind::unlock, 1), Status::invalid) << "is not its to give back";
        EXPECT_EQ(lock(OpKind::unlock, 0), Status::ok);
        EXPECT_EQ(lock(OpKind::lock_shared, 1), Status::ok);
        EXPECT_EQ(lock(OpKind::lock_shared, 0), Status::ok);
        EXPECT_EQ(lock(OpKind::unlock, 1), Status::ok);
        EXPECT_EQ(lock(OpKind::lock_exclusive, 1), Status::retry);
        EXPECT_EQ(lock(OpKind::unlock, 0), Status::ok);
        if (back_end == BackEnd::cma) {
            EXPECT_EQ(at_once(OpKind::put, 0, operand, 8, result), Status::unsupported);
            continue;
        }
        EXPECT_EQ(at_once(OpKind::put, 0, operand, 8, result), Status::ok);
        EXPECT_EQ(*there, 40u);
        // These layouts are invalid, or leave the window.
        using Layout = std::pair<std::uint64_t, std::uint64_t>;
        for (const auto& [element, stride] : {Layout{3, 8}, Layout{4, 3}, Layout{4, 0}, Layout{16, 16},
                                              Layout{4, UINT64_MAX}, Layout{4, UINT64_MAX / 2 + 8}}) {
            call.element = element;
            call.stride = stride;
            EXPECT_EQ(at_once(OpKind::put, 0, operand, 8, result), Status::protocol)
                << element << ' ' << stride;
        }
        call.element = 4;
        call.stride = 4096;
        EXPECT_EQ(at_once(OpKind::get, 0, {}, 8, result), Status::access);
        call.stride = 4092;
        EXPECT_EQ(at_once(OpKind::get, 0, {}, 8, result), Status::ok);
        ASSERT_EQ(result.size(), 8u);
        EXPECT_EQ(std::memcmp(result.data(), there, 4), 0);
        call.element = call.stride = 0;
        result = {};
        call.type = static_cast<std::uint8_t>(DataType::uint64);
        call.reduction = static_cast<std::uint8_t>(Reduction::sum);
        EXPECT_EQ(at_once(OpKind::accumulate, 0, second, 8, result), Status::ok);
        EXPECT_TRUE(result.empty());
        EXPECT_EQ(at_once(OpKind::get_accumulate, 0, second, 8, result), Status::ok);
        ASSERT_EQ(result.size(), 8u);
        std::uint64_t was = 0;
        std::memcpy(&was, result.data(), 8);
        EXPECT_EQ(was, 42u);
        EXPECT_EQ(at_once(OpKind::accumulate, 0, second.first(4), 4, result), Status::protocol)
            << "half a word";
        const std::uint64_t both[] = {7, 44};
        EXPECT_EQ(at_once(OpKind::compare_swap, 0, std::as_bytes(std::span(both)), 8, result), Status::ok);
        EXPECT_EQ(*there, 7u);
        EXPECT_EQ(at_once(OpKind::get, 0, {}, 8, result), Status::ok);
        ASSERT_EQ(result.size(), 8u);
        EXPECT_EQ(std::memcmp(result.data(), there, 8), 0);
    }
}

}  // namespace
}  // namespace offpath::testing
