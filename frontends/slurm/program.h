// Finds the front end for a program. Runs `ldd` as the step's user, and the program if it is a Python.
#ifndef OFFPATH_FRONTENDS_SLURM_PROGRAM_H
#define OFFPATH_FRONTENDS_SLURM_PROGRAM_H

#include "slurm/options.h"
#include "slurm/process.h"

// The name of the front end's library for an MPI; NULL for the others.
const char* offpath_front_end(offpath_mpi_t mpi);

// Which MPI the words of a command line use: that of a front end in the folder `libraries` which needs the
// same MPI library as one of the programs. Python's is that of its mpi4py. Unknown if no program tells. What
// it runs may be anything, so it runs beside the process `task`, within the step.
offpath_mpi_t offpath_mpi_of(const offpath_user_t* user, const char* libraries, int words, char* const* word,
                             char* const* environment, pid_t task);

#endif
