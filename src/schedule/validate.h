// Checks of schedules, with errors that a person can act on. Pure.
#pragma once

#include "base/status.h"
#include "schedule/schedule.h"

#include <span>
#include <string>

namespace offpath::schedule {

// One rank's schedule: slots, peers, kinds and types in range, every range inside its slot, no cycle, sends
// and receives unique per (peer, tag), waits satisfiable as far as one rank can see. On error `problem` names
// the op and the rule. A rank may send to and signal itself; these are matched here. Fields that a kind does
// not use must have their default values. O((ops + edges) log(ops)).
Status validate(const Schedule& schedule, std::string& problem);

// All ranks' schedules of one team (index: rank): each valid; every send has its recv of the same size and
// the reverse; puts and gets inside the peer's slots; every wait reachable by the signals that are sent to
// it; no deadlock across ranks, where a recv is done after its send started, a send is done after its recv
// started (nothing is buffered), and a wait after enough of its signals.
Status validate_team(std::span<const Schedule> schedules, std::string& problem);

}  // namespace offpath::schedule
