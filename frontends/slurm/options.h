// What a user says with --offpath[=WORDS], and an administrator in plugstack.conf. Pure functions.
#ifndef OFFPATH_FRONTENDS_SLURM_OPTIONS_H
#define OFFPATH_FRONTENDS_SLURM_OPTIONS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { OFFPATH_MPI_UNKNOWN, OFFPATH_MPI_NONE, OFFPATH_MPI_OPENMPI, OFFPATH_MPI_MPICH } offpath_mpi_t;

typedef struct {
    bool on;
    unsigned cores;          // of the device, on each node; at least 1
    offpath_mpi_t mpi;       // of the program; unknown: look at the program
    char dir[PATH_MAX / 2];  // holds one directory for each step; only plugstack.conf may name it
} offpath_step_options_t;

// What applies if nobody says anything: off, one core, /tmp.
void offpath_step_options_init(offpath_step_options_t* options);

// Reads WORDS: words with commas between them, out of `on`, `off`, `cores=N` and `mpi=openmpi|mpich|none`.
// Empty text means `on`. On failure returns false, leaves `options` as they are, and says in `problem` what
// is wrong.
bool offpath_step_options_parse(const char* text, offpath_step_options_t* options, char* problem,
                                size_t problem_bytes);

// Reads one argument of the line in plugstack.conf: one word as above, or `dir=DIRECTORY`.
bool offpath_step_options_argument(const char* word, offpath_step_options_t* options, char* problem,
                                   size_t problem_bytes);

#ifdef __cplusplus
}
#endif

#endif
