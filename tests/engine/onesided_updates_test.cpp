// Windows: updates, locks and the order of operations.
#include "onesided_fixture.h"

#include <deque>
#include <random>

namespace offpath::testing {
namespace {

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

}  // namespace
}  // namespace offpath::testing
