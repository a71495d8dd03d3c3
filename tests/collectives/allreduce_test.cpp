#include "collectives/collectives.h"
#include "reduction_checks.h"

#include <gtest/gtest.h>

#include <random>

namespace offpath::collectives {
namespace {

using namespace offpath::testing;

bool check_allreduce(std::uint32_t size, std::uint64_t count, bool in_place, const Build& build) {
    return check_team(
        size, build,
        [&](std::uint32_t rank, std::uint32_t run) {
            RankBuffers buffers{operands(run, rank, 0, count)};
            if (!in_place) buffers.push_back(Buffer(count * 4, std::byte{0xEE}));
            return buffers;
        },
        [&](std::uint32_t rank, std::uint32_t run, const RankBuffers& buffers) {
            if (!in_place && buffers[0] != operands(run, rank, 0, count)) return false;
            return buffers[in_place ? 0 : 1] == sums(run, size, 0, count);
        });
}

class Allreduce : public ::testing::TestWithParam<bool> {};

TEST_P(Allreduce, RecursiveDoublingInTeamsOf1To64) {
    const bool in_place = GetParam();
    for (const std::uint32_t size : team_sizes())
        for (std::uint64_t count : {0u, 1u, 5u})
            ASSERT_TRUE(check_allreduce(
                size, count, in_place,
                [&](std::uint32_t rank) {
                    return allreduce_recursive_doubling({rank, size}, count * 4, integer_sum, in_place);
                }))
                << "team of " << size << ", " << count << " elements";
}

TEST_P(Allreduce, RingInTeamsOf1To64) {
    const bool in_place = GetParam();
    for (const std::uint32_t size : team_sizes())
        // Fewer elements than ranks; uneven blocks; one or many segments in a block.
        for (std::uint64_t count : {0u, 1u, 16 * size - 3, size <= 9 ? 16 * 40 * size + 5 : 1u}) {
            if (count == 1 && size % 8 != 0) continue;
            for (std::uint64_t segment : {0u, 64u})
                ASSERT_TRUE(check_allreduce(
                    size, count, in_place,
                    [&](std::uint32_t rank) {
                        return allreduce_ring({rank, size}, count * 4, integer_sum, in_place, segment);
                    }))
                    << "team of " << size << ", " << count << " elements, segments of " << segment;
        }
}

INSTANTIATE_TEST_SUITE_P(, Allreduce, ::testing::Bool(),
                         [](const auto& instance) { return instance.param ? "InPlace" : "FromSendBuffer"; });

// The result of floating-point sums depends on their order. The order must be the same on every rank and in
// every run.
TEST(AllreduceOrder, GivesTheSameBitsOnEveryRankInEveryRun) {
    for (std::uint32_t size : {2u, 3u, 5u, 8u, 13u})
        for (bool ring : {false, true}) {
            constexpr std::uint64_t count = 200;
            std::vector<schedule::Schedule> schedules;
            for (std::uint32_t rank = 0; rank < size; ++rank) {
                const Reducing what{schedule::DataType::float32, schedule::Reduction::sum};
                schedules.push_back(ring ? allreduce_ring({rank, size}, count * 4, what, true, 64)
                                         : allreduce_recursive_doubling({rank, size}, count * 4, what, true));
            }
            Buffer first;
            for (std::uint64_t seed = 0; seed < 5; ++seed) {
                std::mt19937_64 random(size);
                std::vector<RankBuffers> buffers(size);
                for (RankBuffers& mine : buffers) {
                    mine.assign(1, Buffer(count * 4));
                    for (std::uint64_t i = 0; i < count; ++i) {
                        const float value = std::ldexp(static_cast<float>(random() % 1000), random() % 30);
                        std::memcpy(mine[0].data() + 4 * i, &value, 4);
                    }
                }
                const auto result = run_dataflow(schedules, buffers, {.seed = seed, .eager = seed % 2 == 0});
                ASSERT_TRUE(result.finished) << result.problem;
                if (first.empty()) first = buffers[0][0];
                for (const RankBuffers& mine : buffers)
                    ASSERT_EQ(mine[0], first) << "team of " << size << (ring ? ", ring" : ", doubling");
            }
        }
}

// If the comparison decides nothing, the left operand stays. The choice between -0 and +0 must not depend on
// the rank.
TEST(AllreduceOrder, KeepsTheSameOfTwoEqualValues) {
    for (std::uint32_t size : {2u, 3u, 6u, 8u}) {
        std::vector<schedule::Schedule> schedules;
        std::vector<RankBuffers> buffers(size);
        for (std::uint32_t rank = 0; rank < size; ++rank) {
            schedules.push_back(allreduce_recursive_doubling(
                {rank, size}, 4, {schedule::DataType::float32, schedule::Reduction::maximum}, true));
            const float zero = rank % 2 == 0 ? 0.0f : -0.0f;
            buffers[rank].assign(1, Buffer(4));
            std::memcpy(buffers[rank][0].data(), &zero, 4);
        }
        ASSERT_TRUE(run_dataflow(schedules, buffers, {}).finished);
        for (const RankBuffers& mine : buffers)
            EXPECT_EQ(mine[0], buffers[0][0]) << "team of " << size;
    }
}

}  // namespace
}  // namespace offpath::collectives
