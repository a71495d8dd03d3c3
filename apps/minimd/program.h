// minimd without its main(): one run, in a job that may have others before and after it.
#pragma once

#include "minimd/setup/command_line.h"

namespace minimd {

// What `command_line`, which has been parsed, asks for. Returns the exit code. Collective over
// MPI_COMM_WORLD. Throws mpi_support::UsageError on all ranks alike, and whatever ends a job.
int run_program(const CommandLine& command_line);

}  // namespace minimd
