// Exports schedules to the GOAL text format that LogGOPSim and ATLAHS read. Each schedule becomes one `rank N
// { ... }` block, with send, recv and calc lines and their `requires` dependencies. Pure.
//
// GOAL has no signals. A signal becomes a message of one byte, and a wait for n signals requires the first n
// in rank order.
#pragma once

#include "schedule/schedule.h"

#include <span>
#include <string>

namespace offpath::schedule {

struct GoalOptions {
    double copy_ns_per_byte = 0.1;     // local copies and reductions become calc lines of bytes times this
    double compute_ns_per_byte = 1.0;  // compute ops likewise
};

// `schedules` are those of all ranks of a team, in rank order, and validate_team() holds for them. Tags are
// renumbered consistently across ranks to fit GOAL's 32 bits.
std::string to_goal(std::span<const Schedule> schedules, const GoalOptions& options = {});

}  // namespace offpath::schedule
