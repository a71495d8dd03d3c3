#include "team_run.h"

#include "schedule/validate.h"
#include "schedule/wire.h"

#include <algorithm>

namespace offpath::testing {
namespace {

using namespace offpath::schedule;

std::vector<Schedule> build_team(std::uint32_t size, const Build& build) {
    std::vector<Schedule> schedules;
    for (std::uint32_t rank = 0; rank < size; ++rank)
        schedules.push_back(build(rank));
    return schedules;
}

}  // namespace

bool check_team(std::uint32_t size, const Build& build, const Fill& fill, const Check& check) {
    const std::vector<Schedule> schedules = build_team(size, build);
    std::string problem;
    if (validate_team(schedules, problem) != Status::ok) {
        ADD_FAILURE() << problem;
        return false;
    }
    for (const Schedule& schedule : schedules) {
        Schedule back;
        if (decode(encode(schedule), back, problem) != Status::ok || back != schedule) {
            ADD_FAILURE() << "rank " << schedule.rank() << " changes on the wire: " << problem;
            return false;
        }
    }
    // A missing dependency shows best in small teams. There, each rank is also tried as the one that lags
    // behind.
    const std::uint32_t runs = size <= 5 ? 12 : 3;
    for (std::uint32_t run = 0; run < runs; ++run) {
        std::vector<RankBuffers> buffers;
        for (std::uint32_t rank = 0; rank < size; ++rank)
            buffers.push_back(fill(rank, run));
        const auto result = run_dataflow(schedules, buffers,
                                         {.seed = 1000 * size + run,
                                          .eager = run % 2 == 1,
                                          .slowest_rank = run < 3 ? UINT32_MAX : run % size});
        if (!result.finished) {
            ADD_FAILURE() << result.problem;
            return false;
        }
        for (std::uint32_t rank = 0; rank < size; ++rank)
            if (!check(rank, run, buffers[rank])) {
                ADD_FAILURE() << "wrong data at rank " << rank << " in run " << run;
                return false;
            }
    }
    return true;
}

std::uint32_t most_sends_in_flight(std::uint32_t size, const Build& build, std::uint64_t seeds) {
    const std::vector<Schedule> schedules = build_team(size, build);
    std::uint32_t most = 0;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
        std::vector<RankBuffers> buffers(size);
        const auto result = run_dataflow(schedules, buffers, {.seed = seed, .eager = seed % 2 == 0});
        EXPECT_TRUE(result.finished) << result.problem;
        most = std::max(
            most, *std::max_element(result.most_sends_in_flight.begin(), result.most_sends_in_flight.end()));
    }
    return most;
}

}  // namespace offpath::testing
