// That every file a run will write can be written, and is no other file of the run, before it takes its time.
#pragma once

#include <mpi.h>

#include "minimd/base/settings.h"

namespace minimd {

// Tries --json, --dump, --write-restart and the YAML report on rank 0, leaving what exists as it is and
// nothing that did not. Throws UsageError on every rank, naming the flag and the path. Collective.
void check_outputs(const Settings& settings, MPI_Comm comm);

}  // namespace minimd
