#include "collectives/collectives.h"
#include "dataflow.h"
#include "schedule/validate.h"
#include "schedule/wire.h"

#include <gtest/gtest.h>

namespace offpath::collectives {
namespace {

using namespace offpath::testing;

TEST(Barrier, NobodyLeavesBeforeTheLastOneCame) {
    for (std::uint32_t size = 2; size <= 64; ++size) {
        std::vector<Schedule> schedules;
        for (std::uint32_t rank = 0; rank < size; ++rank)
            schedules.push_back(barrier_dissemination({rank, size}));
        std::string problem;
        ASSERT_EQ(schedule::validate_team(schedules, problem), Status::ok) << problem;

        for (std::uint32_t slowest : {0u, size / 2, size - 1}) {
            std::vector<RankBuffers> buffers(size);
            const auto result = run_dataflow(schedules, buffers, {.seed = size, .slowest_rank = slowest});
            ASSERT_TRUE(result.finished) << result.problem;
            for (std::uint32_t rank = 0; rank < size; ++rank)
                ASSERT_GT(result.last_end[rank], result.first_start[slowest])
                    << "team of " << size << ": rank " << rank << " left before rank " << slowest << " came";
        }
    }
}

TEST(Barrier, HasNoSlotsAndSurvivesTheWire) {
    EXPECT_TRUE(barrier_dissemination({0, 1}).ops().empty());
    const Schedule barrier = barrier_dissemination({3, 33});
    EXPECT_TRUE(barrier.slots().empty());
    EXPECT_EQ(barrier.ops().size(), 2 * 6u);
    Schedule back;
    std::string problem;
    ASSERT_EQ(schedule::decode(schedule::encode(barrier), back, problem), Status::ok) << problem;
    EXPECT_EQ(back, barrier);
}

}  // namespace
}  // namespace offpath::collectives
