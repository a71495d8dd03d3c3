// The checks that every builder's test makes with the schedules of a team: validate them together, encode and
// decode them, run them in random orders, and run them again with other buffers.
#pragma once

#include "dataflow.h"
#include "schedule/schedule.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace offpath::testing {

using Build = std::function<schedule::Schedule(std::uint32_t rank)>;
// Fills the user buffers of a rank; `run` numbers the uses of the schedules.
using Fill = std::function<RankBuffers(std::uint32_t rank, std::uint32_t run)>;
// Checks the contents of the buffers at the end. False stops the test.
using Check = std::function<bool(std::uint32_t rank, std::uint32_t run, const RankBuffers& buffers)>;

// The byte at `index` of the data that `from` sends to `to` in one run.
inline std::byte datum(std::uint32_t run, std::uint32_t from, std::uint32_t to, std::uint64_t index) {
    return static_cast<std::byte>(run * 101 + from * 37 + to * 11 + index * 3 + 5);
}

// Builds, validates and runs. False: something failed; the details are recorded as test failures.
bool check_team(std::uint32_t size, const Build& build, const Fill& fill, const Check& check);

// The largest number of sends that a rank had in flight in any of `seeds` runs.
std::uint32_t most_sends_in_flight(std::uint32_t size, const Build& build, std::uint64_t seeds);

}  // namespace offpath::testing
