// Computations in a replay: of ranks that share a core, and in loops whose iterations differ.
#include "sim/profile/replay.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "test_platform.h"

namespace offpath::sim {
namespace {

// Two ranks of one node compute for a second each. In the profiled run, each waited for its core meanwhile.
double time_s(std::uint32_t cores, double waited_s, double turn_s = 0, double cpu_s = 0) {
    std::vector<RankProfile> profiles(2);
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
        RankProfile& profile = profiles[rank];
        profile.end_s = 1 + waited_s;
        profile.compute_at_end_s = profile.computed_s = 1;
        profile.preempted_s = waited_s;
        profile.cpu_s = cpu_s;
        profile.communicators = {{0, rank, {0, 1}}};
    }
    Platform platform = test_platform();
    platform.host_cores = cores;
    platform.turn_s = turn_s;
    ClusterShape shape;
    shape.nodes = 1;
    shape.ranks_per_node = 2;
    shape.engine = EngineKind::host;
    Cluster cluster(platform, shape);
    return replay(cluster, profiles).time_s;
}

TEST(SharedCore, TakesTurnsBetweenItsRanks) {
    EXPECT_NEAR(time_s(1, 0), 2, 1e-6);
    EXPECT_NEAR(time_s(1, 1), 2, 1e-6);
    EXPECT_NEAR(time_s(2, 1), 1, 1e-6);
}

TEST(SharedCore, LosesWhatTheRanksWaitedForBeyondEachOther) {
    EXPECT_NEAR(time_s(1, 1.2), 2.2, 1e-6);
    EXPECT_NEAR(time_s(2, 1.2), 1, 1e-6);
    // More is no loss of the core.
    EXPECT_NEAR(time_s(1, 3), 2.4, 1e-6);
}

// Where ranks take turns, each has the core while the other waits for a message, and that is no loss.
TEST(SharedCore, LosesWhatNoRankHadWhereRanksTakeTurns) {
    constexpr double turn_s = 2e-4;
    EXPECT_NEAR(time_s(1, 1.2, turn_s, 1.1), 2, 1e-3);    // 2.2 s, of which the ranks had all
    EXPECT_NEAR(time_s(1, 1.2, turn_s, 1.0), 2.2, 1e-3);  // had 2 s
    EXPECT_NEAR(time_s(1, 1.2, turn_s), 2.2, 1e-3);       // older profiles do not say
    EXPECT_NEAR(time_s(2, 1.2, turn_s, 1.0), 1, 1e-3);
}

constexpr std::uint64_t operations = 64, block = 1 << 20;
constexpr double computed_s = 2e-3;  // before a wait, if any

// An exchange, and a wait behind a computation, again and again. `bare`: how many waits of each rank have
// none.
double loop_s(std::array<std::uint64_t, 2> bare) {
    std::vector<RankProfile> profiles(2);
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
        RankProfile& profile = profiles[rank];
        profile.end_s = 1;
        profile.communicators = {{0, rank, {0, 1}}};
        profile.calls.resize(2);
        profile.calls[0].name = "Ialltoall";
        profile.calls[0].comm = 0;
        profile.calls[0].bytes = block;
        profile.calls[1].name = "Wait";
        profile.calls[1].list = {1};
        ProfiledNode post, wait, loop;
        post.count = wait.count = loop.times = operations;
        wait.call = 1;
        wait.compute_s = computed_s * operations / 2;
        wait.bare = bare[rank];
        loop.loop = true;
        loop.body = {post, wait};
        profile.sequence = {loop};
    }
    Platform platform = test_platform();
    ClusterShape shape;
    shape.keeps_libraries = true;
    Cluster cluster(platform, shape);
    return replay(cluster, profiles).time_s;
}

TEST(Loops, IterationsWithoutComputationHideNothing) {
    const double transfer_s = static_cast<double>(block) / test_platform().link_Bps;
    // Each operation hides a millisecond of its transfer, or every other one all of it.
    const double all_s = operations * transfer_s;
    const double every_other_s = operations / 2 * (transfer_s + computed_s);
    const double averaged = loop_s({0, 0}), alternating = loop_s({operations / 2, operations / 2});
    EXPECT_GT(averaged, all_s);
    EXPECT_LT(averaged, 1.25 * all_s);
    EXPECT_GT(alternating, every_other_s);
    EXPECT_LT(alternating, 1.15 * every_other_s);
    // A rank whose clock has counted one more does not get out of step.
    EXPECT_NEAR(loop_s({operations / 2, operations / 2 - 1}), alternating, 0.02 * alternating);
}

}  // namespace
}  // namespace offpath::sim
