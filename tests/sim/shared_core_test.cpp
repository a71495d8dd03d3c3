// Computations of ranks that share a core in a replay.
#include "sim/profile/replay.h"

#include <gtest/gtest.h>

#include <vector>

#include "test_platform.h"

namespace offpath::sim {
namespace {

// Two ranks of one node compute for a second each. In the profiled run, each waited for its core meanwhile.
double time_s(std::uint32_t cores, double waited_s) {
    std::vector<RankProfile> profiles(2);
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
        RankProfile& profile = profiles[rank];
        profile.end_s = 1 + waited_s;
        profile.compute_at_end_s = profile.computed_s = 1;
        profile.preempted_s = waited_s;
        profile.communicators = {{0, rank, {0, 1}}};
    }
    Platform platform = test_platform();
    platform.host_cores = cores;
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

}  // namespace
}  // namespace offpath::sim
