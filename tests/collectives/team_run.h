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

// Sizes of teams, from 1 to 64: all up to 32, then those around the powers of two and their sums. Work grows
// with the cube of the size.
inline const std::vector<std::uint32_t>& team_sizes() {
    static const std::vector<std::uint32_t> sizes = [] {
        std::vector<std::uint32_t> found;
        for (std::uint32_t size = 1; size <= 32; ++size)
            found.push_back(size);
        found.insert(found.end(), {33, 47, 48, 49, 63, 64});
        return found;
    }();
    return sizes;
}

// Builds, validates and runs. False: something failed; the details are recorded as test failures.
bool check_team(std::uint32_t size, const Build& build, const Fill& fill, const Check& check);

// The largest number of sends that a rank had in flight in any of `seeds` runs.
std::uint32_t most_sends_in_flight(std::uint32_t size, const Build& build, std::uint64_t seeds);

}  // namespace offpath::testing
