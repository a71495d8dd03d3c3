// The ways that accesses to windows take in a replay.
#include "sim/profile/replay.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test_platform.h"

namespace offpath::sim {
namespace {

constexpr std::uint32_t lock_all = 0, change = 1, flush = 2, barrier = 3, unlock_all = 4;
constexpr int steps = 20;

struct Shape {
    double compute_s = 0;   // before each change
    bool allocated = true;  // the windows, by MPI
    std::uint64_t bytes = 8;
};

// Two ranks that change each other's window, one element a step. Twice, with a barrier between.
std::vector<RankProfile> program(const Shape& shape) {
    std::vector<RankProfile> profiles(2);
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
        RankProfile& profile = profiles[rank];
        profile.end_s = 1;
        profile.communicators = {{0, rank, {0, 1}}};
        profile.windows = {{0, shape.bytes, shape.allocated}};
        for (const char* name : {"Win_lock_all", "Fetch_and_op", "Win_flush", "Barrier", "Win_unlock_all"}) {
            ProfiledCall& call = profile.calls.emplace_back();
            call.name = name;
            if (call.name == "Barrier") {
                call.comm = 0;
            } else {
                call.window = 0;
            }
            if (call.name == "Fetch_and_op") call.bytes = shape.bytes;
            if (call.name == "Fetch_and_op" || call.name == "Win_flush")
                call.peer = static_cast<std::int32_t>(1 - rank);
        }
        const auto add = [&profile](std::uint32_t call, double compute_s) {
            profile.sequence.push_back({false, call, 1, 1, 0, 0, compute_s, 1e-6, {}});
        };
        add(lock_all, 0);
        for (int half = 0; half < 2; ++half) {
            for (int i = 0; i < steps; ++i) {
                add(change, shape.compute_s);
                add(flush, 0);
            }
            add(barrier, 0);
        }
        add(unlock_all, 0);
    }
    return profiles;
}

struct Outcome {
    double flush_s = 0;            // in all flushes of rank 0
    std::uint64_t by_devices = 0;  // bytes that reached devices
};

Outcome outcome(const Shape& shape, HostMemoryKind memory = HostMemoryKind::cma) {
    Platform platform = test_platform();
    platform.memory = memory;
    ClusterShape cluster_shape;
    cluster_shape.keeps_libraries = true;
    Cluster cluster(platform, cluster_shape);
    const Replayed replayed = replay(cluster, program(shape));
    Outcome found;
    found.flush_s = replayed.calls[0][flush].inside_s;
    for (std::uint32_t rank = 0; rank < 2; ++rank)
        found.by_devices += cluster.worker_of(rank).engine().counters().bytes_received;
    return found;
}

TEST(PlayedWindows, StayOnTheHostWhereRanksDoNotCompute) {
    EXPECT_EQ(outcome({}).by_devices, 0u);
}

TEST(PlayedWindows, GoToTheDeviceAtTheNextBarrierWhereRanksCompute) {
    // The first half of the program is before that barrier.
    EXPECT_EQ(outcome({.compute_s = 1e-3}).by_devices, 2u * steps * 8);
}

TEST(PlayedWindows, SmallAccessesTakeTheShortWayToMemoryThatTheDeviceHasMapped) {
    const Outcome mapped = outcome({.compute_s = 1e-3});
    const Outcome other = outcome({.compute_s = 1e-3, .allocated = false});
    EXPECT_LT(mapped.flush_s, 0.9 * other.flush_s);
    // On a device that maps all memory it makes no difference who has allocated it.
    EXPECT_EQ(outcome({.compute_s = 1e-3, .allocated = false}, HostMemoryKind::map).flush_s,
              outcome({.compute_s = 1e-3}, HostMemoryKind::map).flush_s);
}

TEST(PlayedWindows, ThereIsNoShortWayWhereTheDeviceHasMappedNothing) {
    EXPECT_EQ(outcome({.compute_s = 1e-3}, HostMemoryKind::staged).flush_s,
              outcome({.compute_s = 1e-3, .allocated = false}, HostMemoryKind::staged).flush_s);
}

TEST(PlayedWindows, LongAccessesGoThroughTheOwnDevice) {
    constexpr std::uint64_t bytes = 128 << 10;
    const Outcome mapped = outcome({.compute_s = 1e-3, .bytes = bytes});
    EXPECT_EQ(mapped.by_devices, 2u * steps * bytes * 2);
}

TEST(PlayedWindows, EqualProfilesGiveEqualTimes) {
    EXPECT_EQ(outcome({.compute_s = 1e-3}).flush_s, outcome({.compute_s = 1e-3}).flush_s);
}

}  // namespace
}  // namespace offpath::sim
