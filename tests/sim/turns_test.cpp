// Turns of processes on a core, against times that one can work out by hand.
#include "sim/servers/turns.h"

#include "sim/machine/cluster.h"
#include "sim/programs/measure.h"
#include "test_platform.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace offpath::sim {
namespace {

constexpr Time length = 100 * us;

// A core with two or more processes, and what has happened when.
class SimTurns : public ::testing::Test {
  public:
    EventQueue queue;
    Core core{queue};
    Turns turns{queue, core, length, 1};
    const char processes[4] = {};
    std::map<std::uint64_t, Time> times;

    Turns::Process process(std::size_t number) const { return &processes[number]; }
    static void note(void* self, std::uint64_t number) {
        auto& its = *static_cast<SimTurns*>(self);
        its.times[number] = its.queue.now();
    }
    void compute(std::size_t number, Time work) {
        core.compute(work, &SimTurns::note, this, number, process(number));
        turns.changed();
    }
    void await(std::size_t number) { turns.when_it_runs(process(number), &SimTurns::note, this, number); }
    void run() {
        while (queue.step())
            ASSERT_LT(queue.events(), 10'000u) << "turns go on that nobody waits for";
    }
};

TEST_F(SimTurns, AProcessAloneRunsAllTheTime) {
    turns.join(process(0));
    compute(0, 250 * us);
    run();
    EXPECT_EQ(times[0], 250 * us);
    EXPECT_EQ(queue.events(), 1u);
}

TEST_F(SimTurns, ComputationsHaveTheCoreInTurn) {
    turns.join(process(0));
    turns.join(process(1));
    compute(0, 90 * us);
    compute(1, 150 * us);
    run();
    EXPECT_EQ(times[0], 90 * us);
    // Each may have the third turn. The first process has it though it does nothing in it.
    EXPECT_TRUE(times[1] == 250 * us || times[1] == 350 * us) << times[1];
}

TEST_F(SimTurns, WhoWaitsActivelyKeepsOthersFromTheCore) {
    for (std::size_t number = 0; number < 4; ++number)
        turns.join(process(number));
    for (std::size_t number = 1; number < 4; ++number)
        await(number);
    run();
    // In some order.
    EXPECT_EQ((std::set<Time>{times[1], times[2], times[3]}),
              (std::set<Time>{length, 2 * length, 3 * length}));
}

TEST_F(SimTurns, ATurnThatBeginsLateLastsIntoTheNextInterval) {
    queue.at(
        70 * us,
        [](void* self, std::uint64_t) {
            auto& its = *static_cast<SimTurns*>(self);
            its.turns.join(its.process(0));
            its.turns.join(its.process(1));
            its.await(1);
        },
        this);
    run();
    EXPECT_EQ(times[1], 2 * length);
}

TEST_F(SimTurns, AProcessThatWakesUpGoesAhead) {
    turns.join(process(0));
    turns.join(process(1));
    compute(0, 50 * us);
    queue.at(
        20 * us,
        [](void* self, std::uint64_t) {
            auto& its = *static_cast<SimTurns*>(self);
            its.turns.wake(its.process(2));
            EXPECT_TRUE(its.turns.runs(its.process(2)));
            its.core.step(10 * us);
            its.queue.at(
                30 * us,
                [](void* object, std::uint64_t) {
                    auto& the = *static_cast<SimTurns*>(object);
                    the.turns.leave(the.process(2));
                },
                self);
        },
        this);
    run();
    // It goes on when the one that woke up sleeps again, or after a turn of the other one.
    EXPECT_TRUE(times[0] == 60 * us || times[0] == 130 * us) << times[0];
}

TEST_F(SimTurns, WhoWaitsForATurnOfAProcessThatSleepsIsCalled) {
    for (std::size_t number = 0; number < 3; ++number)
        turns.join(process(number));
    await(1);
    queue.at(
        10 * us,
        [](void* self, std::uint64_t) {
            auto& its = *static_cast<SimTurns*>(self);
            its.turns.leave(its.process(1));
        },
        this);
    run();  // ends: nobody waits for a turn any more
    EXPECT_EQ(times[1], 10 * us);
}

TEST_F(SimTurns, AStepIsNotInterrupted) {
    turns.join(process(0));
    turns.join(process(1));
    await(1);
    core.step(130 * us);
    run();
    EXPECT_EQ(times[1], 130 * us);
}

TEST_F(SimTurns, TurnsOfThoseThatOnlyWaitAreNoEvents) {
    for (std::size_t number = 0; number < 4; ++number)
        turns.join(process(number));
    EXPECT_FALSE(queue.step());
    queue.at(
        second, [](void*, std::uint64_t) {}, nullptr);
    run();
    int running = 0;
    for (std::size_t number = 0; number < 4; ++number)
        running += turns.runs(process(number)) ? 1 : 0;
    EXPECT_EQ(running, 1);
}

TEST_F(SimTurns, EachHasItsShare) {
    for (std::size_t number = 0; number < 3; ++number)
        turns.join(process(number));
    for (std::size_t number = 0; number < 3; ++number)
        compute(number, 50 * length);
    run();
    for (std::size_t number = 0; number < 3; ++number)
        EXPECT_NEAR(static_cast<double>(times[number]), 150.0 * length, 3.0 * length);
}

double time_of(double turn_s, std::uint32_t ranks, EngineKind engine) {
    Platform platform = test_platform();
    platform.shared_cores = true;
    platform.host_cores = 1;
    platform.turn_s = turn_s;
    ClusterShape shape;
    shape.nodes = ranks;
    shape.engine = engine;
    Cluster cluster(platform, shape);
    Job job(cluster);
    MeasureSpec spec;
    spec.pattern = "alltoall";
    spec.bytes = 1 << 10;
    spec.only_alone = true;
    spec.pause_s = 1e-3;
    spec.iterations = 25;
    return measure(job, spec).pure_s;
}

// Each rank sends in its first turn, and all but the last need another one to receive.
TEST(SimRanks, RanksThatWaitInTheLibraryTakeTurns) {
    constexpr double turn_s = 2e-4;
    EXPECT_LT(time_of(0, 4, EngineKind::host), 0.2 * turn_s);
    const double taken = time_of(turn_s, 4, EngineKind::host);
    EXPECT_GT(taken, 4.5 * turn_s);
    EXPECT_LT(taken, 8.5 * turn_s);
}

// With devices, a rank that waits sleeps. Only those that are done wait actively for the others.
TEST(SimRanks, RanksThatSleepAreLessInTheWay) {
    constexpr double turn_s = 2e-4;
    EXPECT_LT(time_of(turn_s, 4, EngineKind::offpath), 0.8 * time_of(turn_s, 4, EngineKind::host));
}

TEST(SimRanks, EqualSeedsTakeEqualTurns) {
    EXPECT_EQ(time_of(1e-4, 3, EngineKind::host), time_of(1e-4, 3, EngineKind::host));
}

}  // namespace
}  // namespace offpath::sim
