// Offloading switched on and off while the program runs: by MPI_Pcontrol on rank 0 of the world, where
// OFFPATH_PCONTROL=on allows it, and by a file on rank 0's node that `offpath control` writes.
// docs/tuning.md.
//
// This says what is wanted; agreement.h sees to it that all ranks follow at the same call. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "../selection.h"

namespace offpath::mpi {

struct Switch {
    std::uint64_t number = 0;  // how often something was switched; 0: never
    OpSet ops;
};

// "on", "off", or "ops " and a list as in OFFPATH_OPS; never more than `settings` allow. Throws
// std::invalid_argument.
OpSet parse_switch(const std::string& text, OpSet settings);

// On rank 0, in MPI_Init: what is in the control file by now is of another job.
void open_switches();
// On rank 0: the latest. Looks at the control file, and says so when that cannot be read.
Switch wanted_switch();

}  // namespace offpath::mpi
