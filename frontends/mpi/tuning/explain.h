// Why calls go where they go, for OFFPATH_EXPLAIN=1: one line for each operation and class of sizes on a
// communicator, one whenever that changes, and a summary when the communicator ends. Printed by rank 0 of the
// communicator. Without OFFPATH_EXPLAIN nothing is kept and nothing is printed but switches. Thread-safe.
#pragma once

#include <cstdint>

#include "../communicators.h"
#include "choices.h"

namespace offpath::mpi {

// A call that was decided.
void explain_choice(const Team& team, Op op, Form form, std::uint64_t bytes, const Choice& choice);
// What refinement concluded.
void explain_finding(const Team& team, const Slot& slot);
// On rank 0 of the world.
void explain_switch(const Team& team, OpSet ops);
// How often which engine was used.
void explain_summary(const Team& team);

}  // namespace offpath::mpi
