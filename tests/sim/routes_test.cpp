// Which messages of a profile devices move in a replay.
#include "sim/profile/replay.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "test_platform.h"

namespace offpath::sim {
namespace {

constexpr std::uint64_t short_bytes = 1 << 10, long_bytes = 4 << 20;

// Rank 0 sends messages of these lengths to rank 1, one after the other. All have one tag.
std::vector<RankProfile> program(const std::vector<std::uint64_t>& lengths) {
    std::vector<RankProfile> profiles(2);
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
        RankProfile& profile = profiles[rank];
        profile.end_s = 1;
        profile.communicators = {{0, rank, {0, 1}}};
        const auto add = [&profile](const ProfiledCall& call) {
            const auto number = static_cast<std::uint32_t>(profile.calls.size());
            profile.sequence.push_back({false, number, 1, 1, 0, 0, 0, 0, {}});
            profile.calls.push_back(call);
        };
        for (const std::uint64_t bytes : lengths) {
            ProfiledCall post, wait;
            post.name = rank == 0 ? "Isend" : "Irecv";
            post.comm = post.tag = 0;
            post.peer = rank == 0 ? 1 : 0;
            post.bytes = bytes;
            post.windows = 1;
            post.window_compute_s = 1;  // so a device can hide the transfer
            add(post);
            wait.name = "Wait";
            wait.list = {1};
            add(wait);
        }
    }
    return profiles;
}

std::uint64_t bytes_by_devices(const std::vector<std::uint64_t>& lengths) {
    ClusterShape shape;
    shape.keeps_libraries = true;
    Cluster cluster(test_platform(), shape);
    replay(cluster, program(lengths));
    return cluster.worker_of(1).engine().counters().bytes_received;
}

TEST(Routes, LongMessagesGoToTheDevice) {
    EXPECT_EQ(bytes_by_devices({long_bytes, long_bytes}), 2 * long_bytes);
    EXPECT_EQ(bytes_by_devices({short_bytes, short_bytes}), 0u);
}

TEST(Routes, LongMessagesGoThereThoughOthersOfTheirTagAreShort) {
    EXPECT_EQ(bytes_by_devices({short_bytes, long_bytes, short_bytes, short_bytes, long_bytes}),
              2 * long_bytes);
}

}  // namespace
}  // namespace offpath::sim
