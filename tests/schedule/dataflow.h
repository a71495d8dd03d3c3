// Dataflow: runs the schedules of all ranks of a team over buffers in memory, with no network and no time.
// The order is random among the legal ones and given by a seed. It is as nasty as the rules allow: data move
// at any moment between the start of an op and its end, and what an op is about to overwrite is filled with
// garbage when it starts. So a missing dependency shows as wrong data with some seed. One thread.
#pragma once

#include "schedule/schedule.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace offpath::testing {

using Buffer = std::vector<std::byte>;
// The user and scratch slots of one rank. run() makes those that are too short as long as the schedule says.
using RankBuffers = std::vector<Buffer>;

struct DataflowOptions {
    std::uint64_t seed = 1;
    // Sends take their data when they start and end on their own; otherwise sender and receiver meet.
    bool eager = false;
    // This rank moves only when nobody else can.
    std::uint32_t slowest_rank = UINT32_MAX;
    std::function<void(std::uint64_t kernel, std::span<const std::byte> src, std::span<std::byte> dst)>
        kernel = nullptr;
};

struct DataflowResult {
    bool finished = false;
    std::string problem;  // set when not finished: an op that never ended
    // By rank: the most sends between start and end at one time.
    std::vector<std::uint32_t> most_sends_in_flight;
    // By rank: the number of steps, of all ranks together, before its first op started and its last one
    // ended.
    std::vector<std::uint64_t> first_start, last_end;
};

DataflowResult run_dataflow(std::span<const schedule::Schedule> schedules, std::span<RankBuffers> buffers,
                            const DataflowOptions& options);

}  // namespace offpath::testing
