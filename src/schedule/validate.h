// Checks of schedules, with errors that a person can act on. Pure.
#pragma once

#include "base/status.h"
#include "schedule/schedule.h"

#include <span>
#include <string>

namespace offpath::schedule {

// One rank's schedule: slots, peers, kinds and types in range, every range inside its slot, no cycle, sends
// and receives unique per (peer, tag), waits satisfiable as far as one rank can see. On error `problem` names
// the op and the rule. O(ops + edges) or with a log factor.
Status validate(const Schedule& schedule, std::string& problem);

// All ranks' schedules of one team (index: rank): each valid; every send has its recv of the same size and
// the reverse; puts and gets inside the peer's slots; every wait reachable by the signals that are sent to
// it; no deadlock across ranks (the union of the graphs with send->recv and signal->wait edges has no cycle).
Status validate_team(std::span<const Schedule> schedules, std::string& problem);

}  // namespace offpath::schedule
