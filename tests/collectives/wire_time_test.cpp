// The algorithms for large messages keep the links busy: their time in the link model is compared with the
// lower bound for any algorithm. Chunks have 1 KiB; a hop costs one slot.
#include "collectives/selection.h"
#include "link_model.h"
#include "schedule/builder.h"

#include <gtest/gtest.h>

#include <functional>

namespace offpath::collectives {
namespace {

using offpath::testing::Service;
using offpath::testing::slots_until_done;

constexpr std::uint64_t chunk = 1 << 10, mebibyte = 1 << 20;

// Returns the time relative to the least time for `bytes` through the busiest link.
double stretch(std::uint32_t size, std::uint64_t bytes, Service service,
               const std::function<Schedule(TeamShape)>& build) {
    std::vector<Schedule> schedules;
    for (std::uint32_t rank = 0; rank < size; ++rank)
        schedules.push_back(build({rank, size}));
    const std::uint64_t slots = slots_until_done(schedules, chunk, service);
    EXPECT_GT(slots, 0u) << "never ends";
    return static_cast<double>(slots) / static_cast<double>(bytes / chunk);
}

TEST(WireTime, AlltoallKeepsEveryLinkBusyBothWays) {
    for (std::uint32_t size : {2u, 3u, 4u, 5u, 8u, 16u}) {
        const std::uint64_t least = (size - 1) * mebibyte;
        EXPECT_LT(
            stretch(size, least, Service::in_turn, [](TeamShape team) { return alltoall(team, mebibyte); }),
            size < 8 ? 1.01 : 1.15)
            << "linear, " << size;
        for (Service service : {Service::oldest_first, Service::in_turn})
            EXPECT_LT(stretch(size, least, service,
                              [](TeamShape team) { return alltoall_pairwise(team, mebibyte); }),
                      1.02)
                << "pairwise, " << size;
    }
}

TEST(WireTime, AllgatherKeepsEveryLinkBusyBothWays) {
    for (std::uint32_t size : {2u, 3u, 4u, 5u, 8u, 16u}) {
        const std::uint64_t least = (size - 1) * mebibyte;
        const std::vector<std::uint64_t> bytes(size, mebibyte);
        std::vector<std::uint64_t> offsets(size);
        for (std::uint32_t i = 0; i < size; ++i)
            offsets[i] = i * mebibyte;
        for (Service service : {Service::oldest_first, Service::in_turn})
            EXPECT_LT(stretch(size, least, service,
                              [&](TeamShape team) { return allgatherv(team, bytes, offsets, true); }),
                      1.01)
                << "ring, " << size;
        EXPECT_LT(stretch(size, least, Service::in_turn,
                          [&](TeamShape team) { return allgatherv_direct(team, bytes, offsets, true, 4); }),
                  size < 8 ? 1.01 : 1.15)
            << "direct, " << size;
    }
}

TEST(WireTime, BcastMovesALargeMessageAtTheRateOfOneLink) {
    const auto large = [](TeamShape team) { return bcast(team, 0, 16 * mebibyte); };
    for (std::uint32_t size : {2u, 3u, 4u, 8u, 16u}) {
        EXPECT_LT(stretch(size, 16 * mebibyte, Service::oldest_first, large), 1.08) << size;
        EXPECT_LT(stretch(size, 16 * mebibyte, Service::in_turn, large), 1.4) << size;
    }
    EXPECT_LT(
        stretch(4, mebibyte, Service::oldest_first, [](TeamShape team) { return bcast(team, 2, mebibyte); }),
        1.08);
}

constexpr Reducing sum{schedule::DataType::float64, schedule::Reduction::sum};

TEST(WireTime, AllreduceKeepsEveryLinkBusyBothWays) {
    for (std::uint32_t size : {2u, 3u, 4u, 5u, 8u, 16u}) {
        const std::uint64_t bytes = 16 * mebibyte, least = 2 * (bytes - bytes / size);
        for (Service service : {Service::oldest_first, Service::in_turn})
            EXPECT_LT(stretch(size, least, service,
                              [&](TeamShape team) { return allreduce(team, bytes, sum, true); }),
                      size < 8 ? 1.05 : 1.15)
                << size;
    }
}

TEST(WireTime, ReductionsToOneRankAndAlongTheRanksMoveAtTheRateOfOneLink) {
    const std::uint64_t bytes = 16 * mebibyte;
    for (std::uint32_t size : {2u, 3u, 4u, 8u, 16u}) {
        EXPECT_LT(stretch(size, bytes, Service::oldest_first,
                          [&](TeamShape team) { return reduce(team, 0, bytes, sum, false); }),
                  1.1)
            << "reduce, " << size;
        EXPECT_LT(stretch(size, bytes, Service::oldest_first,
                          [&](TeamShape team) { return scan(team, bytes, sum, false, false); }),
                  1.1)
            << "scan, " << size;
        const std::vector<std::uint64_t> blocks(size, mebibyte);
        for (Service service : {Service::oldest_first, Service::in_turn})
            EXPECT_LT(stretch(size, (size - 1) * mebibyte, service,
                              [&](TeamShape team) { return reduce_scatter(team, blocks, sum); }),
                      size < 8 ? 1.1 : 1.15)
                << "reduce_scatter, " << size;
    }
}

TEST(WireTime, GatherAndScatterKeepTheLinkOfTheRootBusy) {
    for (std::uint32_t size : {2u, 3u, 4u, 8u, 16u}) {
        const std::uint64_t least = (size - 1) * mebibyte;
        for (Service service : {Service::oldest_first, Service::in_turn}) {
            EXPECT_LT(stretch(size, least, service,
                              [&](TeamShape team) { return gather(team, 0, mebibyte, false); }),
                      1.02)
                << "gather, " << size;
            EXPECT_LT(stretch(size, least, service,
                              [&](TeamShape team) { return scatter(team, 0, mebibyte, false); }),
                      1.02)
                << "scatter, " << size;
        }
    }
}

TEST(WireTime, BcastTakesTheRingWhereTheChainIsTooLong) {
    ASSERT_EQ(choose_bcast(64, mebibyte), BcastAlgorithm::ring);
    const auto ring = [](TeamShape team) { return bcast_ring(team, 0, mebibyte); };
    const auto chain = [](TeamShape team) {
        return bcast_chain(team, 0, mebibyte, bcast_segment_bytes(64, mebibyte));
    };
    for (Service service : {Service::oldest_first, Service::in_turn})
        EXPECT_LT(stretch(64, mebibyte, service, ring), stretch(64, mebibyte, service, chain));
}

TEST(WireTime, SeesReceiversThatAreTheTargetOfAll) {
    // An alltoall in which all ranks start with rank 0, one message at a time.
    const auto same_order = [](TeamShape team) {
        schedule::Builder builder(team.rank, team.size);
        const auto in = builder.user_slot(team.size * mebibyte),
                   out = builder.user_slot(team.size * mebibyte);
        for (std::uint32_t peer = 0; peer < team.size; ++peer)
            if (peer != team.rank) builder.recv(peer, 0, {out, peer * mebibyte}, mebibyte);
        schedule::OpId last = schedule::no_peer;
        for (std::uint32_t peer = 0; peer < team.size; ++peer) {
            if (peer == team.rank) continue;
            const auto send = builder.send(peer, 0, {in, peer * mebibyte}, mebibyte);
            if (last != schedule::no_peer) builder.depend(send, last);
            last = send;
        }
        return builder.finish();
    };
    EXPECT_GT(stretch(8, 7 * mebibyte, Service::oldest_first, same_order), 1.5);
}

}  // namespace
}  // namespace offpath::collectives
