#include "collectives/collectives.h"
#include "collectives/extent.h"
#include "collectives/ops_in_flight.h"
#include "team_run.h"

#include <gtest/gtest.h>

namespace offpath::collectives {
namespace {

using namespace offpath::testing;

enum class Shape { equal, uneven, only_one };

struct GatheredBlocks {
    GatheredBlocks(std::uint32_t size, Shape shape) : bytes(size), offsets(size) {
        std::uint64_t at = shape == Shape::uneven ? 3 : 0;
        for (std::uint32_t i = 0; i < size; ++i) {
            const std::uint32_t rank = shape == Shape::uneven ? size - 1 - i : i;
            if (shape == Shape::equal)
                bytes[rank] = 12;
            else if (shape == Shape::uneven)
                bytes[rank] = rank % 3 == 0 ? 0 : (rank * 7) % 23;
            else
                bytes[rank] = rank == size / 2 ? 40 : 0;
            offsets[rank] = at;
            at += bytes[rank] + (shape == Shape::uneven ? rank % 2 : 0);
        }
    }
    std::vector<std::uint64_t> bytes, offsets;
};

bool check_allgather(const GatheredBlocks& blocks, bool in_place, const Build& build) {
    const auto size = static_cast<std::uint32_t>(blocks.bytes.size());
    const auto place = [&](Buffer& buffer, std::uint32_t rank, std::uint32_t run, std::uint64_t at) {
        for (std::uint64_t i = 0; i < blocks.bytes[rank]; ++i)
            buffer[at + i] = datum(run, rank, 0, i);
    };
    return check_team(
        size, build,
        [&](std::uint32_t rank, std::uint32_t run) {
            Buffer recv(extent(blocks.bytes, blocks.offsets), std::byte{0xEE});
            if (in_place) {
                place(recv, rank, run, blocks.offsets[rank]);
                return RankBuffers{recv};
            }
            Buffer send(blocks.bytes[rank]);
            place(send, rank, run, 0);
            return RankBuffers{send, recv};
        },
        [&](std::uint32_t, std::uint32_t run, const RankBuffers& buffers) {
            Buffer expected(extent(blocks.bytes, blocks.offsets), std::byte{0xEE});
            for (std::uint32_t from = 0; from < size; ++from)
                place(expected, from, run, blocks.offsets[from]);
            return buffers[in_place ? 0 : 1] == expected;
        });
}

class Allgather : public ::testing::TestWithParam<bool> {};

TEST_P(Allgather, RingGathersInTeamsOf1To64) {
    const bool in_place = GetParam();
    for (const std::uint32_t size : team_sizes())
        for (Shape shape : {Shape::equal, Shape::uneven, Shape::only_one}) {
            const GatheredBlocks blocks(size, shape);
            const std::uint64_t segment = size % 4 == 0 ? 0 : size % 4 * 5;
            ASSERT_TRUE(check_allgather(
                blocks, in_place,
                [&](std::uint32_t rank) {
                    return allgatherv_ring({rank, size}, blocks.bytes, blocks.offsets, in_place, segment);
                }))
                << "team of " << size << ", shape " << static_cast<int>(shape);
        }
}

TEST_P(Allgather, DirectGathersInTeamsOf1To64) {
    const bool in_place = GetParam();
    for (const std::uint32_t size : team_sizes())
        for (Shape shape : {Shape::equal, Shape::uneven, Shape::only_one}) {
            const GatheredBlocks blocks(size, shape);
            ASSERT_TRUE(check_allgather(
                blocks, in_place,
                [&](std::uint32_t rank) {
                    return allgatherv_direct({rank, size}, blocks.bytes, blocks.offsets, in_place, 3);
                }))
                << "team of " << size << ", shape " << static_cast<int>(shape);
        }
}

INSTANTIATE_TEST_SUITE_P(, Allgather, ::testing::Bool(),
                         [](const auto& instance) { return instance.param ? "InPlace" : "FromSendBuffer"; });

TEST(AllgatherWindow, BoundsTheSendsInFlight) {
    const GatheredBlocks blocks(9, Shape::equal);
    const auto ring = [&](std::uint32_t rank) {
        return allgatherv_ring({rank, 9}, blocks.bytes, blocks.offsets, true, 1);
    };
    EXPECT_EQ(most_sends_in_flight(9, ring, 20), pipeline_sends);
    const auto direct = [&](std::uint32_t rank) {
        return allgatherv_direct({rank, 9}, blocks.bytes, blocks.offsets, true, 3);
    };
    EXPECT_EQ(most_sends_in_flight(9, direct, 20), 3u);
}

}  // namespace
}  // namespace offpath::collectives
