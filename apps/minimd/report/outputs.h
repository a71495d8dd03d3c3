// Checks before a run that every file that it will write can be written, and is not another file of the run.
#pragma once

#include <mpi.h>

#include "minimd/base/settings.h"

namespace minimd {

// Tries the files of --json, --dump, --write-restart and the YAML report on rank 0. Existing files are not
// changed, and no new ones are left. Throws UsageError on every rank, naming the flag and the path.
// Collective.
void check_outputs(const Settings& settings, MPI_Comm comm);

}  // namespace minimd
