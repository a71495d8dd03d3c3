// minimd without its main(): one run, in a job that may have other runs before and after it.
#pragma once

#include "minimd/setup/command_line.h"

namespace minimd {

// Does what the parsed `command_line` asks for, and returns the exit code. Collective over MPI_COMM_WORLD.
// Throws mpi_support::UsageError on all ranks, and any other exception that must end the job.
int run_program(const CommandLine& command_line);

}  // namespace minimd
