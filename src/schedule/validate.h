// Checks schedules. Error messages name the cause, so that a person can act on them. Pure.
#pragma once

#include "base/status.h"
#include "schedule/schedule.h"

#include <span>
#include <string>

namespace offpath::schedule {

// Checks one rank's schedule. Slots, peers, kinds and types are in range; every range lies inside its slot;
// there is no cycle; sends and receives are unique per (peer, tag); waits can be satisfied as far as one rank
// can tell. Fields that a kind does not use must have their default values. A rank may send to and signal
// itself; such pairs are matched here. On error `problem` names the op and the rule. O((ops + edges)
// log(ops)).
Status validate(const Schedule& schedule, std::string& problem);

// Checks the schedules of all ranks of a team (index: rank). Each is valid; every send has a recv of the same
// size and every recv a send; the signals sent suffice for every wait; no deadlock occurs across ranks. For
// deadlocks a recv is done after its send started, a send after its recv started (nothing is buffered), and a
// wait after enough of its signals.
Status validate_team(std::span<const Schedule> schedules, std::string& problem);

}  // namespace offpath::schedule
