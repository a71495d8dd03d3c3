#include "collectives/selection.h"
#include "schedule/validate.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace offpath::collectives {
namespace {

using schedule::OpKind;

std::size_t count(const Schedule& schedule, OpKind kind) {
    return static_cast<std::size_t>(std::count_if(schedule.ops().begin(), schedule.ops().end(),
                                                  [&](const schedule::Op& op) { return op.kind == kind; }));
}

TEST(Selection, TakesTheChainForLargeAndTheTreeForSmallBroadcasts) {
    for (std::uint32_t size : {3u, 4u, 8u, 16u, 64u}) {
        EXPECT_EQ(choose_bcast(size, 1 << 10), BcastAlgorithm::binomial) << size;
        EXPECT_EQ(choose_bcast(size, 256 << 20), BcastAlgorithm::chain) << size;
    }
    for (std::uint32_t size : {2u, 3u, 4u, 8u})
        EXPECT_EQ(choose_bcast(size, 1 << 20), BcastAlgorithm::chain) << size;
    EXPECT_EQ(choose_bcast(64, 1 << 20), BcastAlgorithm::ring);
}

TEST(Selection, FillsTheChainInAFractionOfTheWholeTime) {
    for (std::uint32_t size : {3u, 4u, 8u, 16u})
        for (std::uint64_t bytes = 1 << 20; bytes <= 1 << 30; bytes *= 4)
            EXPECT_LE((size - 2) * bcast_segment_bytes(size, bytes), bytes / 16 + size * (32 << 10));
    EXPECT_EQ(bcast_segment_bytes(4, 1 << 20), 32u << 10);
    EXPECT_EQ(bcast_segment_bytes(4, 16 << 20), 48u << 10);
    EXPECT_EQ(bcast_segment_bytes(4, 1 << 30), 512u << 10) << "at most 2048 segments";
    EXPECT_EQ(bcast_segment_bytes(2, 1 << 30), 0u) << "nobody forwards, so nothing is gained";
}

TEST(Selection, CutsTheBlocksOfALargeRing) {
    EXPECT_EQ(ring_segment_bytes(1 << 20), 48u << 10);
    EXPECT_EQ(ring_segment_bytes(64 << 10), 32u << 10);
    EXPECT_EQ(ring_segment_bytes(1 << 30), 512u << 10);
    std::vector<std::uint64_t> offsets(16);
    for (std::uint64_t i = 0; i < offsets.size(); ++i)
        offsets[i] = i << 20;
    const std::vector<std::uint64_t> bytes(16, 1 << 20), small(16, 1 << 10), few(2, 1 << 20);
    EXPECT_EQ(count(allgatherv({1, 16}, bytes, offsets, false), OpKind::send), 15 * 22u);
    EXPECT_EQ(count(allgatherv({1, 16}, small, offsets, false), OpKind::send), 15u) << "direct";
    EXPECT_EQ(count(allgatherv({1, 2}, few, offsets, false), OpKind::send), 1u) << "direct";
}

TEST(Selection, GivesMatchingSchedulesToAllRanks) {
    for (std::uint32_t size : {1u, 2u, 3u, 5u, 8u, 33u, 64u})
        for (std::uint64_t bytes : {0u, 100u, 40u << 10, 1u << 20}) {
            const std::vector<std::uint64_t> sizes(size, bytes);
            std::vector<std::uint64_t> offsets(size);
            for (std::uint32_t i = 0; i < size; ++i)
                offsets[i] = i * bytes;
            std::vector<std::vector<Schedule>> teams(5);
            for (std::uint32_t rank = 0; rank < size; ++rank) {
                const TeamShape team{rank, size};
                teams[0].push_back(alltoall(team, bytes));
                teams[1].push_back(alltoallv(team, {sizes, offsets, sizes, offsets}));
                teams[2].push_back(allgatherv(team, sizes, offsets, true));
                teams[3].push_back(bcast(team, size / 2, bytes));
                teams[4].push_back(barrier(team));
            }
            for (std::size_t i = 0; i < teams.size(); ++i) {
                std::string problem;
                EXPECT_EQ(schedule::validate_team(teams[i], problem), Status::ok)
                    << "collective " << i << " of " << size << " ranks, " << bytes << " bytes: " << problem;
            }
        }
}

TEST(Selection, ReducesSmallDataInFewStepsAndLargeDataAtTheRateOfALink) {
    for (std::uint32_t size : {2u, 3u, 4u, 8u, 16u, 64u}) {
        EXPECT_EQ(choose_allreduce(size, 64), AllreduceAlgorithm::recursive_doubling) << size;
        EXPECT_EQ(choose_allreduce(size, 16 << 20), AllreduceAlgorithm::ring) << size;
        EXPECT_EQ(choose_reduce(size, 64), ReduceAlgorithm::binomial) << size;
        EXPECT_EQ(choose_reduce(size, 256 << 20), ReduceAlgorithm::chain) << size;
        EXPECT_EQ(choose_scan(size, 64), ScanAlgorithm::recursive_doubling) << size;
        EXPECT_EQ(choose_scan(size, 16 << 20), ScanAlgorithm::chain) << size;
    }
    EXPECT_EQ(choose_reduce(64, 1 << 20), ReduceAlgorithm::ring);
}

// A reduction costs the device scratch memory: a few segments, however large the data are.
TEST(Selection, BoundsTheScratchOfReductions) {
    const auto scratch = [](const Schedule& schedule) {
        std::uint64_t bytes = 0;
        for (const schedule::Slot& slot : schedule.slots())
            if (slot.kind == schedule::SlotKind::scratch) bytes += slot.bytes;
        return bytes;
    };
    constexpr Reducing sum{schedule::DataType::float64, schedule::Reduction::sum};
    for (std::uint32_t size : {2u, 3u, 8u, 64u})
        for (std::uint64_t bytes : {std::uint64_t{8}, std::uint64_t{256} << 10, std::uint64_t{16} << 20}) {
            constexpr std::uint64_t most = 4 << 20;
            const std::vector<std::uint64_t> blocks(size, bytes / 8 / size * 8);
            for (std::uint32_t rank : {0u, size - 1}) {
                EXPECT_LE(scratch(allreduce({rank, size}, bytes, sum, true)), most);
                EXPECT_LE(scratch(reduce({rank, size}, 0, bytes, sum, true)), most);
                EXPECT_LE(scratch(reduce_scatter({rank, size}, blocks, sum)), most);
                EXPECT_LE(scratch(scan({rank, size}, bytes, sum, true, true)), most);
            }
        }
}

TEST(Selection, CutsReductionsBetweenElements) {
    constexpr Reducing sum{schedule::DataType::complex_long_double, schedule::Reduction::sum};
    for (std::uint32_t size : {2u, 3u, 7u})
        for (std::uint64_t bytes : {std::uint64_t{32} * 3, std::uint64_t{32} * 100'003}) {
            const std::vector<std::uint64_t> blocks(size, bytes);
            for (const Schedule& schedule :
                 {allreduce({1, size}, bytes, sum, true), reduce({1, size}, 1, bytes, sum, true),
                  reduce_scatter({1, size}, blocks, sum), scan({1, size}, bytes, sum, true, true)})
                for (const schedule::Op& op : schedule.ops()) {
                    EXPECT_EQ(op.bytes % 32, 0u);
                    EXPECT_EQ(op.src.offset % 32, 0u);
                    EXPECT_EQ(op.dst.offset % 32, 0u);
                }
        }
}

}  // namespace
}  // namespace offpath::collectives
