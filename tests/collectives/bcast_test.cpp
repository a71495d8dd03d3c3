#include "collectives/collectives.h"
#include "collectives/ops_in_flight.h"
#include "team_run.h"

#include <gtest/gtest.h>

#include <set>

namespace offpath::collectives {
namespace {

using namespace offpath::testing;

bool check_bcast(std::uint32_t size, std::uint32_t root, std::uint64_t bytes, const Build& build) {
    Buffer message(bytes);
    const auto write = [&](std::uint32_t run) {
        for (std::uint64_t i = 0; i < bytes; ++i)
            message[i] = datum(run, root, 0, i);
    };
    return check_team(
        size, build,
        [&](std::uint32_t rank, std::uint32_t run) {
            write(run);
            return RankBuffers{rank == root ? message : Buffer(bytes, std::byte{0xEE})};
        },
        [&](std::uint32_t, std::uint32_t run, const RankBuffers& buffers) {
            write(run);
            return buffers[0] == message;
        });
}

// Teams of 1 to 64 ranks with several roots and sizes, including fewer bytes than ranks.
template <class Builder>
void check_everywhere(Builder build) {
    for (const std::uint32_t size : team_sizes())
        for (std::uint32_t root : std::set<std::uint32_t>{0, 1 % size, size / 2, size - 1})
            for (std::uint64_t bytes :
                 {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{37}, 3 * std::uint64_t{size}})
                ASSERT_TRUE(check_bcast(size, root, bytes,
                                        [&](std::uint32_t rank) {
                                            return build(TeamShape{rank, size}, root, bytes);
                                        }))
                    << "team of " << size << ", root " << root << ", " << bytes << " bytes";
}

TEST(Bcast, BinomialReachesAllInTeamsOf1To64) {
    check_everywhere(bcast_binomial);
}

TEST(Bcast, ChainReachesAllInTeamsOf1To64) {
    check_everywhere([](TeamShape team, std::uint32_t root, std::uint64_t bytes) {
        return bcast_chain(team, root, bytes, team.size % 5 * 2);
    });
}

TEST(Bcast, RingReachesAllInTeamsOf1To64) {
    check_everywhere(bcast_ring);
}

TEST(Bcast, BoundsTheSendsInFlight) {
    const auto chain = [](std::uint32_t rank) { return bcast_chain({rank, 4}, 1, 64, 1); };
    EXPECT_EQ(most_sends_in_flight(4, chain, 20), pipeline_sends);
    const auto ring = [](std::uint32_t rank) { return bcast_ring({rank, 16}, 1, 64); };
    EXPECT_EQ(most_sends_in_flight(16, ring, 20), pipeline_sends);
}

TEST(Bcast, LoadsTheLinksAsTheAlgorithmsSay) {
    for (std::uint32_t rank = 0; rank < 8; ++rank) {
        EXPECT_LE(bcast_chain({rank, 8}, 3, 8000, 100).bytes_sent(), 8000u);
        EXPECT_LE(bcast_ring({rank, 8}, 3, 8000).bytes_sent(), rank == 3 ? 14000u : 7000u);
    }
    EXPECT_EQ(bcast_binomial({3, 8}, 3, 8000).bytes_sent(), 24000u);
}

}  // namespace
}  // namespace offpath::collectives
