// A step on this node, as the parts of the plug-in share it, and what they ask Slurm for.
#ifndef OFFPATH_FRONTENDS_SLURM_STEP_H
#define OFFPATH_FRONTENDS_SLURM_STEP_H

#include "slurm/cores.h"
#include "slurm/options.h"
#include "slurm/process.h"

#include <limits.h>
#include <slurm/spank.h>
#include <stdatomic.h>
#include <stdint.h>

// What slurmstepd and the tasks of a node share: the tasks are forks of slurmstepd.
typedef struct {
    atomic_bool told;  // whether a task has said that it shares a core with the device
    atomic_int mpi;    // an offpath_mpi_t: the program's, as slurmstepd has found it while the tasks waited
} offpath_step_shared_t;

typedef struct {
    offpath_step_options_t options;
    char node[256];
    offpath_user_t user;
    char libraries[PATH_MAX];       // the folder that this plug-in is in
    uint32_t tasks;                 // of this node, that have not ended
    offpath_step_shared_t* shared;  // NULL: nothing is offloaded
    // The device (device.h).
    char dir[PATH_MAX];  // empty: no daemon is to start
    int dir_descriptor;  // the user may rename the directory, so its files are removed through this
    offpath_device_place_t place;
    int claims[2];  // of the CPUs of the step and of its device (claims.h); -1: none
    offpath_process_t device;
} offpath_step_t;

// The state of a step before anything is known about it.
void offpath_step_init(offpath_step_t* step);

// Writes a line to the step's error output, with the node's name.
__attribute__((format(printf, 2, 3))) void offpath_step_say(const offpath_step_t* step, const char* format,
                                                            ...);

// Reads a variable of the job's environment. Returns false, and an empty string, if it is not set, is empty
// or does not fit.
bool offpath_step_has(spank_t spank, const char* variable, char* value, size_t bytes);

#endif
