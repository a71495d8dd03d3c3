// Export to the GOAL text format that LogGOPSim and ATLAHS read: one `rank N { ... }` block per schedule,
// with send, recv and calc lines and their `requires` dependencies. Pure. What GOAL does not know is spelled
// out in messages: a put is a send, answered by one byte when the data are there; a get is one byte, answered
// by the data; a signal is a message of one byte, and a wait for n of them requires the first n in rank
// order.
#pragma once

#include "schedule/schedule.h"

#include <span>
#include <string>

namespace offpath::schedule {

struct GoalOptions {
    double copy_ns_per_byte = 0.1;     // local copies and reductions become calc lines of bytes times this
    double compute_ns_per_byte = 1.0;  // compute ops likewise
};

// The schedules of all ranks of a team, in rank order, for which validate_team() holds. Tags are renumbered
// to fit GOAL's 32 bits, consistently across ranks.
std::string to_goal(std::span<const Schedule> schedules, const GoalOptions& options = {});

}  // namespace offpath::schedule
