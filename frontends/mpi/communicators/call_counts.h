// Counts of collectives by communicator and call, for the file of OFFPATH_SUMMARY. Without that variable
// nothing is counted here. Thread-safe.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "runtime/selection.h"

namespace offpath::mpi {

struct Team;

// Counts one call of this rank. `reason` is none if the call went to the device. `size` is the number of
// bytes that decided; `from_others` is what arrives here from other ranks. `comm` may be null if it was
// freed.
void count_call(const Team& team, MPI_Comm comm, Op op, Form form, HostReason reason, std::uint64_t size,
                std::uint64_t from_others);

// Gathers the counts of all ranks and adds them to rank 0's file. Collective over the world.
void report_calls();

}  // namespace offpath::mpi
