// Switches offloading on and off while the program runs: by MPI_Pcontrol on rank 0 of the world, if
// OFFPATH_PCONTROL=on allows it, and by a file on rank 0's node that `offpath control` writes. See
// docs/tuning.md.
//
// This part says what is wanted; agreement.h makes all ranks follow at the same call. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/selection.h"

namespace offpath::mpi {

struct Switch {
    std::uint64_t number = 0;  // how many switches there were; 0: none
    OpSet ops;
};

// "on", "off", or "ops " and a list as in OFFPATH_OPS; never more than `settings` allow. Throws
// std::invalid_argument.
OpSet parse_switch(const std::string& text, OpSet settings);

// A switch by a tool, in the words of parse_switch(). Rank 0's counts; others only check it. False if it has
// no effect, because the words are wrong or nothing can be switched.
bool switch_offloading(const std::string& text);

// On rank 0, in MPI_Init: ignores the present contents of the control file, which belong to another job.
void open_switches();
// On rank 0: the latest switch. Reads the control file, and reports if it cannot be read.
Switch wanted_switch();

}  // namespace offpath::mpi
