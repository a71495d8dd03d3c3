// Dataflow: runs the schedules of all ranks of a team over buffers in memory, without network and time. The
// order is one of the legal orders, chosen at random by a seed, and as unfavourable as the rules allow: data
// move at any moment between the start and the end of an op, and memory that an op will overwrite is filled
// with garbage when it starts. So with some seed, a missing dependency causes wrong data. One thread.
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
// The user and scratch slots of one rank. run() extends those that are too short for the schedule.
using RankBuffers = std::vector<Buffer>;

struct DataflowOptions {
    std::uint64_t seed = 1;
    // True: sends take their data when they start, and end by themselves. False: sender and receiver meet.
    bool eager = false;
    // This rank moves only when no other rank can.
    std::uint32_t slowest_rank = UINT32_MAX;
    std::function<void(const schedule::KernelCall& call, std::span<const std::span<std::byte>> buffers)>
        kernel = nullptr;
};

struct DataflowResult {
    bool finished = false;
    std::string problem;  // set if not finished: an op that never ended
    // By rank: the largest number of sends that had started but not ended at one time.
    std::vector<std::uint32_t> most_sends_in_flight;
    // By rank: the number of steps, of all ranks together, before its first op started and before its last op
    // ended.
    std::vector<std::uint64_t> first_start, last_end;
};

DataflowResult run_dataflow(std::span<const schedule::Schedule> schedules, std::span<RankBuffers> buffers,
                            const DataflowOptions& options);

}  // namespace offpath::testing
