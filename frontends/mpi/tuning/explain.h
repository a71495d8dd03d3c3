// Explains where calls go, for OFFPATH_EXPLAIN=1: one line for each operation and class of sizes on a
// communicator, one whenever that changes, and a summary when the communicator ends. Rank 0 of the
// communicator prints. Without OFFPATH_EXPLAIN nothing is kept, and only switches are printed. Thread-safe.
#pragma once

#include <cstdint>

#include "choices.h"
#include "communicators/communicators.h"
#include "job_settings.h"

namespace offpath::mpi {

// A call for which the choice was made.
void explain_kept_choice(const Team& team, Op op, Form form, std::uint64_t bytes, const Choice& choice);
inline void explain_choice(const Team& team, Op op, Form form, std::uint64_t bytes, const Choice& choice) {
    if (tuning_settings.explain != 0) explain_kept_choice(team, op, form, bytes, choice);
}
// A conclusion of refinement.
void explain_finding(const Team& team, const Slot& slot);
// On rank 0 of the world.
void explain_switch(const Team& team, OpSet ops);
// How often each engine was used.
void explain_summary(const Team& team);

}  // namespace offpath::mpi
