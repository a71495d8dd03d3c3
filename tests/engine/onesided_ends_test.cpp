// Windows: what ends if a window, a rank, its memory or a proxy goes.
#include "onesided_fixture.h"

namespace offpath::testing {
namespace {

class OneSidedOfThreeProxies : public OneSided {};
class OneSidedByCopies : public OneSided {};  // memory that is not read through a pointer
class OneSidedStaged : public OneSided {};    // words of a ledger come later

INSTANTIATE_TEST_SUITE_P(Memory, OneSidedOfThreeProxies,
                         ::testing::Combine(::testing::Values(BackEnd::map, BackEnd::cma, BackEnd::staged),
                                            ::testing::Values(3u)));
INSTANTIATE_TEST_SUITE_P(Memory, OneSidedByCopies,
                         ::testing::Combine(::testing::Values(BackEnd::cma, BackEnd::staged),
                                            ::testing::Values(1u, 3u)));
INSTANTIATE_TEST_SUITE_P(Memory, OneSidedStaged,
                         ::testing::Combine(::testing::Values(BackEnd::staged), ::testing::Values(1u, 3u)));

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

// The words of every rank of a world, for windows with a ledger.
struct Ledgers {
    // `remote`: the proxies have no pointers to the words.
    explicit Ledgers(Windows& windows, bool with_marks = false, bool remote = false)
        : ranks(windows.world.ranks()), words(ranks) {
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
            words[rank].resize(
                (with_marks ? rma::Ledger::bytes_with_marks(ranks) : rma::Ledger::bytes(ranks)) / 8);
            memory::HostRange range = World::range(words[rank].data(), words[rank].size() * 8);
            if (!remote) range.region = TestMemory::mapped_region;
            EXPECT_EQ(windows.world.engine_of(rank).keep_ledger(*windows.window[rank], range), Status::ok);
        }
    }
    bool closed(std::uint32_t rank) const { return words[rank][0] != 0; }
    std::uint64_t begun(std::uint32_t rank, std::uint32_t origin) const { return words[rank][1 + origin]; }
    std::uint64_t applied(std::uint32_t rank, std::uint32_t origin) const {
        return words[rank][1 + ranks + origin];
    }
    rma::Marks::State state(std::uint32_t rank, std::uint32_t origin, std::uint32_t mark) const {
        const auto* const bytes = reinterpret_cast<const std::byte*>(words[rank].data());
        return rma::Marks::state(bytes + rma::Ledger::bytes(ranks) + origin * rma::Marks::bytes_of_origin,
                                 mark);
    }
    std::uint32_t ranks;
    std::vector<std::vector<std::uint64_t>> words;
};

// Puts of all sizes, each with a mark. What is marked as applied is there, and a small one that is there is
// marked, if the device has a pointer to the memory.
TEST_P(OneSided, TheMarksSayWhichPutsAreApplied) {
    for (const int rounds : {0, 1, 3, 10, 30, 100}) {
        World world(options(3));
        Windows windows(world, 1 << 20);
        const Ledgers ledgers(windows, true);
        std::vector<std::vector<std::byte>> data;
        for (const std::size_t bytes : {8, 100, 5000, 4000, 100000, 16, 30000})
            data.emplace_back(bytes, std::byte{9});
        const auto place = [](std::size_t i) { return i * (128 << 10); };
        for (std::size_t i = 0; i < data.size(); ++i) {
            OneSidedCall call = put(1, place(i), data[i]);
            call.mark = static_cast<std::uint32_t>(i + 1);
            windows.start(2, call);
        }
        for (int i = 0; i < rounds; ++i)
            world.round();
        ASSERT_TRUE(world.run_until(
            [&] { return world.engine_of(2).close_session(world.session(2), Status::peer_lost); }));
        ASSERT_TRUE(world.run_until([&] { return ledgers.closed(1); }));
        for (std::size_t i = 0; i < data.size(); ++i) {
            const auto begin = windows.memory[1].begin() + static_cast<std::ptrdiff_t>(place(i));
            const bool there = std::equal(data[i].begin(), data[i].end(), begin);
            const bool marked =
                ledgers.state(1, 2, static_cast<std::uint32_t>(i + 1)) == rma::Marks::State::applied;
            EXPECT_TRUE(there || !marked) << "put " << i << " after " << rounds << " rounds";
            if (std::get<0>(GetParam()) == BackEnd::map && data[i].size() <= 16) {
                EXPECT_EQ(there, marked) << "put " << i << " after " << rounds << " rounds";
            }
        }
        if (rounds == 100) {
            EXPECT_EQ(ledgers.state(1, 2, 1), rma::Marks::State::applied);
        }
        EXPECT_EQ(ledgers.state(1, 0, 1), rma::Marks::State::unknown);
    }
}

TEST_P(OneSided, TheLedgerSaysWhichUpdatesAreApplied) {
    const bool remote = std::get<0>(GetParam()) == BackEnd::staged;
    for (const int rounds : {0, 1, 3, 10, 30, 100}) {
        World world(options(3));
        Windows windows(world, 128 << 10);
        const Ledgers ledgers(windows, false, remote);
        const std::vector<std::uint64_t> ones(300, 1);
        const auto sum = static_cast<std::uint8_t>(Reduction::sum);
        for (int i = 0; i < 20; ++i)
            windows.start(2, update(OpKind::accumulate, sum, DataType::uint64, 1, 0,
                                    std::span<const std::uint64_t>(ones)));
        for (int i = 0; i < rounds; ++i)
            world.round();
        ASSERT_TRUE(world.run_until(
            [&] { return world.engine_of(2).close_session(world.session(2), Status::peer_lost); }));
        ASSERT_TRUE(world.run_until([&] { return ledgers.closed(1); }));
        std::uint64_t first = 0;
        std::memcpy(&first, windows.memory[1].data(), 8);
        const std::uint64_t bytes = first * ones.size() * 8;
        EXPECT_LE(ledgers.applied(1, 2), bytes) << "after " << rounds << " rounds";
        EXPECT_GE(ledgers.begun(1, 2), bytes) << "after " << rounds << " rounds";
        // A write that was given up has ended when the ledger is closed.
        EXPECT_EQ(ledgers.begun(1, 2), ledgers.applied(1, 2)) << "after " << rounds << " rounds";
        EXPECT_EQ(ledgers.applied(1, 0), 0u);
    }
}

// A proxy may die at any moment. Writes overtake each other.
TEST_P(OneSided, TheLedgerIsRightAtAllTimes) {
    const bool remote = std::get<0>(GetParam()) == BackEnd::staged;
    for (const std::size_t numbers : {1, 100, 300}) {
        World world(options(2));
        Windows windows(world, 128 << 10);
        const Ledgers ledgers(windows, false, remote);
        const std::vector<std::uint64_t> ones(numbers, 1);
        const auto sum = static_cast<std::uint8_t>(Reduction::sum);
        constexpr int updates = 20;
        std::vector<Done> done(updates);
        for (Done& one : done)
            windows.start(
                0,
                update(OpKind::accumulate, sum, DataType::uint64, 1, 0, std::span<const std::uint64_t>(ones)),
                &one);
        const auto check = [&] {
            std::uint64_t applied = 0;
            std::memcpy(&applied, windows.memory[1].data(), 8);
            const std::uint64_t bytes = applied * numbers * 8;
            EXPECT_LE(ledgers.applied(1, 0), bytes);
            EXPECT_GE(ledgers.begun(1, 0), bytes);
            // At most one is in doubt, if no word is on its way.
            if (!remote) {
                EXPECT_LE(ledgers.begun(1, 0), ledgers.applied(1, 0) + numbers * 8);
            }
        };
        world.memory(1).after_each = check;
        ASSERT_TRUE(world.run_until([&] {
            check();
            return std::ranges::all_of(done, [](const Done& one) { return one.status.has_value(); });
        })) << numbers
            << " numbers";
        ASSERT_TRUE(world.run_until([&] { return ledgers.applied(1, 0) == updates * numbers * 8; }));
        EXPECT_EQ(ledgers.begun(1, 0), ledgers.applied(1, 0));
    }
}

// Where neither of its two devices is lost, the origin gets the result of an update that is applied.
TEST_P(OneSidedOfThreeProxies, AnAppliedUpdateIsAnsweredInSpiteOfALoss) {
    const bool remote = std::get<0>(GetParam()) == BackEnd::staged;
    int applied = 0;
    for (int rounds = 0; rounds < 60; ++rounds) {
        World world(options(3));
        Windows windows(world, 1000);
        const Ledgers ledgers(windows, false, remote);
        const std::uint64_t one = 1;
        std::uint64_t before = 77;
        Done done;
        windows.start(0,
                      update(OpKind::get_accumulate, static_cast<std::uint8_t>(Reduction::sum),
                             DataType::uint64, 1, 0, std::span<const std::uint64_t>(&one, 1), &before),
                      &done);
        for (int i = 0; i < rounds; ++i)
            world.round();
        ASSERT_TRUE(world.run_until(
            [&] { return world.engine_of(2).close_session(world.session(2), Status::peer_lost); }));
        ASSERT_TRUE(world.run_until([&] { return ledgers.closed(1) && done.status.has_value(); }));
        const bool is_there = windows.memory[1][0] == std::byte{1};
        EXPECT_EQ(is_there, *done.status == Status::ok) << "after " << rounds << " rounds";
        EXPECT_EQ(ledgers.applied(1, 0), is_there ? 8U : 0U) << "after " << rounds << " rounds";
        if (is_there) {
            EXPECT_EQ(before, 0U) << "after " << rounds << " rounds";
            ++applied;
        }
    }
    EXPECT_GT(applied, 0);
    EXPECT_LT(applied, 60);
}

// The words lie in memory of the client, which frees it when it has left the window.
TEST_P(OneSidedStaged, AWindowEndsAfterTheLastWordOfItsLedger) {
    World world(options(2));
    Windows windows(world, 1000);
    Ledgers ledgers(windows, false, true);
    const std::uint64_t one = 1;
    windows.start(0, update(OpKind::accumulate, static_cast<std::uint8_t>(Reduction::sum), DataType::uint64,
                            1, 0, std::span<const std::uint64_t>(&one, 1)));
    EXPECT_EQ(windows.flush(0), Status::ok);
    Done ended;
    Status status = world.engine_of(1).destroy_window(*windows.window[1], &ended);
    ASSERT_TRUE(world.run_until([&] { return status == Status::ok || ended.status.has_value(); }));
    EXPECT_EQ(ledgers.applied(1, 0), 8u);
    std::ranges::fill(ledgers.words[1], 0);
    for (int i = 0; i < 20; ++i)
        world.round();
    EXPECT_EQ(ledgers.applied(1, 0), 0u) << "a word came after the window's end";
}

TEST_P(OneSided, AWindowWithALedgerAcceptsNothingAfterALoss) {
    const bool remote = std::get<0>(GetParam()) == BackEnd::staged;
    World world(options(3));
    Windows windows(world, 100000);
    const Ledgers ledgers(windows, false, remote);
    std::vector<std::byte> small(100, std::byte{6});
    windows.start(1, put(0, 50, small));
    EXPECT_EQ(windows.flush(1), Status::ok);
    EXPECT_FALSE(ledgers.closed(0));
    OneSidedCall lock;
    lock.kind = OpKind::lock_shared;
    lock.target = 0;
    ASSERT_TRUE(world.run_until(
        [&] { return world.engine_of(2).close_session(world.session(2), Status::peer_lost); }));
    ASSERT_TRUE(world.run_until([&] { return ledgers.closed(0) && ledgers.closed(1); }));
    windows.memory[0][50] = std::byte{1};
    windows.start(1, put(0, 50, small));
    EXPECT_EQ(windows.flush(1), Status::peer_lost);
    Done asked;
    windows.start(1, lock, &asked);
    ASSERT_TRUE(world.run_until([&] { return asked.status.has_value(); }));
    EXPECT_EQ(*asked.status, Status::peer_lost);
    EXPECT_EQ(windows.memory[0][50], std::byte{1}) << "written after the ledger was closed";
}

// Operations between two ranks that stay, when a third one goes in the middle of them.
TEST_P(OneSided, WhatALossCutsIsLost) {
    for (int rounds = 0; rounds < 60; rounds += 3) {
        World world(options(3));
        Windows windows(world, 2 << 20);
        const Ledgers ledgers(windows);
        std::vector<std::byte> data(1 << 20, std::byte{5}), result(1 << 20);
        Done got, written;
        OneSidedCall get;
        get.kind = OpKind::get;
        get.bytes = result.size();
        get.result = World::range(result.data(), result.size());
        windows.start(1, get, &got);
        windows.start(1, put(0, 1 << 20, data), &written);
        for (int i = 0; i < rounds; ++i)
            world.round();
        ASSERT_TRUE(world.run_until(
            [&] { return world.engine_of(2).close_session(world.session(2), Status::peer_lost); }));
        ASSERT_TRUE(world.run_until([&] { return got.status.has_value() && written.status.has_value(); }));
        for (const Done* done : {&got, &written})
            EXPECT_TRUE(*done->status == Status::ok || *done->status == Status::peer_lost)
                << "after " << rounds << " rounds: " << to_string(*done->status);
    }
}

// The origin can no longer read its operands. The owner stops waiting for them.
TEST_P(OneSidedByCopies, OperandsThatCannotBeReadHoldNothingBack) {
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

TEST_P(OneSidedOfThreeProxies, ALockOfALostProxysRankIsNotWaitedFor) {
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

}  // namespace
}  // namespace offpath::testing
