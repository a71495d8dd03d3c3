// signal, wait and reduce, alone and together; scratch memory; replays.
#include "engine/reductions/reduce.h"
#include "engine/schedules/plan.h"
#include "schedule/builder.h"
#include "schedule/validate.h"
#include "world.h"

#include <gtest/gtest.h>

namespace offpath::testing {
namespace {

using memory::BackEnd;
using schedule::BufferRef;
using schedule::Builder;

class EngineOps : public ::testing::TestWithParam<std::tuple<BackEnd, std::uint32_t>> {
  protected:
    WorldOptions options() const {
        WorldOptions made;
        made.ranks = 2;
        made.memory = std::get<0>(GetParam());
        made.proxies = std::get<1>(GetParam());
        return made;
    }
};

// Runs the plans of both ranks, with one buffer for each rank.
void run_pair(World& world, std::uint32_t sequence, engine::Plan& first, engine::Plan& second,
              std::span<double> a, std::span<double> b) {
    Done done[2];
    const memory::HostRange ra[] = {World::range(a.data(), a.size_bytes())},
                            rb[] = {World::range(b.data(), b.size_bytes())};
    ASSERT_EQ(world.engine_of(0).start(world.team(0), first, sequence, ra, &done[0]), Status::in_progress);
    ASSERT_EQ(world.engine_of(1).start(world.team(1), second, sequence, rb, &done[1]), Status::in_progress);
    ASSERT_TRUE(world.run_until([&] { return done[0].status && done[1].status; }));
    ASSERT_EQ(*done[0].status, Status::ok);
    ASSERT_EQ(*done[1].status, Status::ok);
}

TEST_P(EngineOps, SignalsGoThereAndBack) {
    World world(options());
    constexpr std::size_t count = 5000, bytes = count * sizeof(double);
    // Rank 0 signals twice. Rank 1 copies its first half when both signals are there, and answers. Rank 0
    // copies its own first half when the answer is there.
    Builder b0(0, 2), b1(1, 2);
    const auto s0 = b0.user_slot(2 * bytes), s1 = b1.user_slot(2 * bytes);
    const auto first = b0.signal(1, 5), second = b0.signal(1, 5);
    b0.depend(second, first);
    const auto answer = b0.wait(6, 1);
    b0.depend(b0.copy({s0, 0}, {s0, bytes}, bytes), answer);
    const auto wait = b1.wait(5, 2), copy = b1.copy({s1, 0}, {s1, bytes}, bytes), reply = b1.signal(0, 6);
    b1.depend(copy, wait);
    b1.depend(reply, copy);
    engine::Plan p0(b0.finish()), p1(b1.finish());
    std::string problem;
    const schedule::Schedule both[] = {p0.schedule(), p1.schedule()};
    ASSERT_EQ(schedule::validate_team(both, problem), Status::ok) << problem;
    for (std::uint32_t replay = 0; replay < 3; ++replay) {
        std::vector<double> a(2 * count), b(2 * count);
        for (std::size_t i = 0; i < count; ++i) {
            a[i] = 1.0 * i + replay;
            b[i] = -2.0 * i - replay;
        }
        run_pair(world, replay, p0, p1, a, b);
        for (std::size_t i = 0; i < count; ++i) {
            ASSERT_EQ(a[count + i], a[i]);
            ASSERT_EQ(b[count + i], b[i]);
        }
    }
}

TEST_P(EngineOps, ReducesReceivedData) {
    World world(options());
    constexpr std::size_t count = 3000, bytes = count * sizeof(double);
    // Both send their first half to the other, add the half that arrives, and copy the sum into the second
    // half.
    auto build = [&](std::uint32_t rank) {
        Builder b(rank, 2);
        const auto data = b.user_slot(2 * bytes), in = b.scratch_slot(bytes);
        const auto send = b.send(1 - rank, 1, {data, 0}, bytes);
        const auto recv = b.recv(1 - rank, 1, {in, 0}, bytes);
        const auto sum =
            b.reduce(schedule::DataType::float64, schedule::Reduction::sum, {in, 0}, {data, 0}, bytes);
        b.depend(sum, {send, recv});
        const auto copy = b.copy({data, 0}, {data, bytes}, bytes);
        b.depend(copy, sum);
        return b.finish();
    };
    engine::Plan p0(build(0)), p1(build(1));
    std::vector<double> a(2 * count), b(2 * count);
    for (std::size_t i = 0; i < count; ++i) {
        a[i] = i;
        b[i] = 2.0 * i + 1;
    }
    run_pair(world, 0, p0, p1, a, b);
    for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(a[i], 3.0 * i + 1);
        ASSERT_EQ(b[i], 3.0 * i + 1);
        ASSERT_EQ(a[count + i], a[i]);
        ASSERT_EQ(b[count + i], a[i]);
    }
}

// So after the loss of a proxy, a rank that is done is not needed again.
TEST_P(EngineOps, ARankIsDoneWhenWhatItSendsHasArrived) {
    World world(options());
    constexpr std::size_t count = 50'000, bytes = count * sizeof(double);
    Builder b0(0, 2), b1(1, 2);
    b0.send(1, 1, {b0.user_slot(bytes), 0}, bytes);
    b1.recv(0, 1, {b1.user_slot(bytes), 0}, bytes);
    const engine::Plan p0(b0.finish()), p1(b1.finish());
    for (std::uint32_t run = 0; run < 20; ++run) {
        std::vector<double> a(count, run + 1.0), b(count, 0.0);
        const memory::HostRange ra[] = {World::range(a.data(), bytes)},
                                rb[] = {World::range(b.data(), bytes)};
        Done sent, received;
        ASSERT_EQ(world.engine_of(0).start(world.team(0), p0, run, ra, &sent), Status::in_progress);
        ASSERT_EQ(world.engine_of(1).start(world.team(1), p1, run, rb, &received), Status::in_progress);
        ASSERT_TRUE(world.run_until([&] { return sent.status.has_value(); }));
        ASSERT_EQ(*sent.status, Status::ok);
        ASSERT_EQ(a, b);
        ASSERT_TRUE(world.run_until([&] { return received.status.has_value(); }));
    }
}

// Memory is forbidden at every point of a run. Both ranks then fail with that reason and no other, whichever
// starts first and in both orders of the loop.
TEST_P(EngineOps, MemoryThatMayNotBeTouchedFailsBothWithThatReason) {
    if (std::get<0>(GetParam()) == BackEnd::map) return;  // mapped memory cannot refuse
    constexpr std::uint32_t blocks = 6;
    constexpr std::size_t bytes = 20000;  // several chunks
    Builder b0(0, 2), b1(1, 2);
    const auto s0 = b0.user_slot(blocks * bytes), s1 = b1.user_slot(blocks * bytes);
    for (std::uint32_t block = 0; block < blocks; ++block) {
        b0.send(1, block, {s0, block * bytes}, bytes);
        b1.recv(0, block, {s1, block * bytes}, bytes);
    }
    engine::Plan plans[] = {engine::Plan(b0.finish()), engine::Plan(b1.finish())};
    for (int late = 0; late < 2; ++late) {
        for (int rounds = 0; rounds < 12; ++rounds) {
            WorldOptions chosen = options();
            chosen.advance_first = rounds % 2 == 0;
            World world(chosen);
            std::vector<std::byte> data[] = {std::vector<std::byte>(blocks * bytes),
                                             std::vector<std::byte>(blocks * bytes)};
            Done done[2];
            const auto start = [&](int rank) {
                const memory::HostRange range[] = {World::range(data[rank].data(), data[rank].size())};
                ASSERT_EQ(world.engine_of(rank).start(world.team(rank), plans[rank], 0, range, &done[rank]),
                          Status::in_progress);
            };
            start(1 - late);
            start(late);
            for (int round = 0; round < rounds; ++round)
                world.round();
            world.memory(1).forbid();
            ASSERT_TRUE(world.run_until([&] { return done[0].status && done[1].status; }));
            if (*done[1].status == Status::ok) break;  // the operation had already ended
            // A sender whose last bytes were already on their way has ended well.
            if (*done[0].status != Status::ok) {
                EXPECT_EQ(*done[0].status, Status::access) << late << " after " << rounds << " rounds";
            }
            EXPECT_EQ(*done[1].status, Status::access) << late << " after " << rounds << " rounds";
        }
    }
}

TEST_P(EngineOps, StartIsCheckedAgainstTheSchedule) {
    World world(options());
    Builder b0(0, 2);
    b0.user_slot(100);
    engine::Plan plan(b0.finish());
    std::vector<std::byte> data(100);
    Done done;
    const memory::HostRange small[] = {World::range(data.data(), 99)},
                            right[] = {World::range(data.data(), 100)};
    EXPECT_EQ(world.engine_of(0).start(world.team(0), plan, 0, small, &done), Status::access);
    EXPECT_EQ(world.engine_of(0).start(world.team(0), plan, 0, {}, &done), Status::invalid);
    EXPECT_EQ(world.engine_of(0).start(world.team(0), plan, 1, right, &done), Status::invalid);
    EXPECT_EQ(world.engine_of(1).start(world.team(1), plan, 0, right, &done),
              Status::invalid);  // rank 0's schedule
    EXPECT_FALSE(done.status.has_value());
    EXPECT_EQ(world.engine_of(0).start(world.team(0), plan, 0, right, &done), Status::in_progress);
    ASSERT_TRUE(world.run_until([&] { return done.status.has_value(); }));
    EXPECT_EQ(*done.status, Status::ok);
}

// Both operands are in host memory and many tiles long. Several reductions run at once, more than there are
// tiles for.
TEST_P(EngineOps, ReducesWhatIsLongerThanItsBuffers) {
    constexpr std::size_t count = 10'007;
    World world(options());
    schedule::Builder builder(0, 2), other(1, 2);
    const auto a = builder.user_slot(count * 8), b = builder.user_slot(count * 8),
               c = builder.user_slot(count * 8);
    builder.reduce(schedule::DataType::int64, schedule::Reduction::sum, {a, 0}, {b, 0}, count * 8);
    builder.reduce(schedule::DataType::int64, schedule::Reduction::sum, {a, 0}, {c, 0}, count * 8);
    const engine::Plan plan(builder.finish()), idle(other.finish());
    std::vector<std::int64_t> one(count), two(count), three(count);
    for (std::size_t i = 0; i < count; ++i) {
        one[i] = static_cast<std::int64_t>(i);
        two[i] = 1000;
        three[i] = -7;
    }
    const memory::HostRange buffers[] = {World::range(one.data(), count * 8),
                                         World::range(two.data(), count * 8),
                                         World::range(three.data(), count * 8)};
    Done done;
    ASSERT_EQ(world.engine_of(0).start(world.team(0), plan, 0, buffers, &done), Status::in_progress);
    ASSERT_TRUE(world.run_until([&] { return done.status.has_value(); }));
    EXPECT_EQ(*done.status, Status::ok);
    for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(two[i], static_cast<std::int64_t>(i) + 1000);
        ASSERT_EQ(three[i], static_cast<std::int64_t>(i) - 7);
    }
}

// A session ends while its reductions wait for memory. They end, nothing is written any more, and the buffers
// that they held serve the other session.
TEST_P(EngineOps, GivesTheBuffersOfAReductionBackWhenItsSessionGoes) {
    constexpr std::size_t count = 4000;
    World world(options());
    std::vector<std::unique_ptr<engine::Plan>> plans;
    std::vector<std::vector<std::int64_t>> operands(4, std::vector<std::int64_t>(count, 1));
    Done done[2];
    for (std::uint32_t rank : {0u, 1u}) {
        schedule::Builder builder(rank, 2);
        const auto a = builder.user_slot(count * 8), b = builder.user_slot(count * 8);
        // There are more ops at once than tiles.
        for (std::size_t part = 0; part < 4; ++part)
            builder.reduce(schedule::DataType::int64, schedule::Reduction::sum, {a, part * count * 2},
                           {b, part * count * 2}, count * 2);
        plans.push_back(std::make_unique<engine::Plan>(builder.finish()));
        const memory::HostRange buffers[] = {World::range(operands[2 * rank].data(), count * 8),
                                             World::range(operands[2 * rank + 1].data(), count * 8)};
        ASSERT_EQ(world.engine_of(rank).start(world.team(rank), *plans[rank], 0, buffers, &done[rank]),
                  Status::in_progress);
    }
    world.engine_of(0).advance();
    const bool closed = world.engine_of(0).close_session(world.session(0), Status::canceled);
    ASSERT_TRUE(world.run_until([&] { return done[0].status.has_value(); }));
    if (!closed) {
        ASSERT_TRUE(world.run_until(
            [&] { return world.engine_of(0).close_session(world.session(0), Status::canceled); }));
    }
    ASSERT_TRUE(world.run_until([&] { return done[1].status.has_value(); }));
    // The other rank's operation ended because its peer did. Its next one can have all buffers.
    std::vector<std::int64_t> again(count, 5);
    const memory::HostRange buffers[] = {World::range(operands[2].data(), count * 8),
                                         World::range(again.data(), count * 8)};
    Done last;
    ASSERT_EQ(world.engine_of(1).start(world.team(1), *plans[1], 1, buffers, &last), Status::in_progress);
    ASSERT_TRUE(world.run_until([&] { return last.status.has_value(); }));
    EXPECT_EQ(*last.status, Status::ok);
    EXPECT_EQ(again, std::vector<std::int64_t>(count, 6));
}

INSTANTIATE_TEST_SUITE_P(Memory, EngineOps,
                         ::testing::Combine(::testing::Values(BackEnd::map, BackEnd::cma, BackEnd::staged),
                                            ::testing::Values(1u, 2u)),
                         [](const auto& made) {
                             return std::string(memory::to_string(std::get<0>(made.param))) +
                                    (std::get<1>(made.param) == 1 ? "OneProxy" : "TwoProxies");
                         });

}  // namespace
}  // namespace offpath::testing
