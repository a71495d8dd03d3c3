// What Open MPI's algorithms send must match, for any root and any number of ranks. That they bring the right
// sums is tested with the patterns.
#include "sim/programs/host_algorithms.h"
#include "schedule/validate.h"

#include <gtest/gtest.h>

namespace offpath::sim {
namespace {

TEST(HostAlgorithms, MatchOnAllRanks) {
    for (const char* const name : {"alltoall", "allgather", "gather", "scatter", "bcast", "allreduce",
                                   "reduce", "reduce_scatter", "scan", "exscan"}) {
        for (const std::uint32_t size : {1u, 2u, 3u, 5u, 6u, 8u, 13u}) {
            for (const std::uint64_t bytes : {8u, 40'000u, 80'000u}) {
                for (const HostCall how :
                     {HostCall{SendOrder::staggered, true}, HostCall{SendOrder::staggered, false},
                      HostCall{SendOrder::by_rank, false}})
                    for (std::uint32_t root = 0; root < size; root += 2) {
                        std::vector<schedule::Schedule> schedules;
                        for (std::uint32_t rank = 0; rank < size; ++rank)
                            if (auto schedule = build_of_host({.name = name,
                                                               .bytes = bytes,
                                                               .root = root,
                                                               .order = how.order,
                                                               .blocking = how.blocking},
                                                              {rank, size}))
                                schedules.push_back(*std::move(schedule));
                        if (schedules.empty()) continue;
                        std::string problem;
                        ASSERT_EQ(schedules.size(), size) << name;
                        EXPECT_EQ(schedule::validate_team(schedules, problem), Status::ok)
                            << name << ", " << size << " ranks, root " << root << ": " << problem;
                    }
            }
        }
    }
}

// Each rank sends half of the vector, then a quarter, and so on, and its part of the result to the root.
TEST(HostAlgorithms, ReductionsHalveTheVector) {
    constexpr std::uint64_t bytes = 80'000;
    const auto schedule = build_of_host({.name = "reduce", .bytes = bytes, .root = 0}, {3, 4});
    ASSERT_TRUE(schedule);
    EXPECT_EQ(schedule->bytes_sent(), bytes / 2 + bytes / 4 + bytes / 4);
}

// Two exchanges of four ranks, where a non-blocking one goes up a tree and down again.
TEST(HostAlgorithms, ShortBlockingAllreducesDouble) {
    for (std::uint32_t rank = 0; rank < 4; ++rank)
        EXPECT_EQ(build_of_host({.name = "allreduce", .bytes = 8, .blocking = true}, {rank, 4})->bytes_sent(),
                  16u);
    EXPECT_EQ(build_of_host({.name = "allreduce", .bytes = 8}, {3, 4})->bytes_sent(), 8u);
}

}  // namespace
}  // namespace offpath::sim
