// The control groups of a step, which its device joins. They keep Slurm's accounts and limits.
#ifndef OFFPATH_FRONTENDS_SLURM_CGROUPS_H
#define OFFPATH_FRONTENDS_SLURM_CGROUPS_H

#include "slurm/cores.h"

#include <limits.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { OFFPATH_MOST_CGROUPS = 16 };

typedef struct {
    char files[OFFPATH_MOST_CGROUPS][PATH_MAX];  // cgroup.procs of each hierarchy
    int count;
} offpath_cgroups_t;

// Reads the groups that `list`, a file such as /proc/PID/cgroup, names. `root` is normally /sys/fs/cgroup.
// `cpus` are those that the device needs. If a cpuset (version 1) lacks some of them, the nearest one above
// that has them takes its place, up to the job's: a step's cpuset lacks the job's other cores.
void offpath_cgroups_read(FILE* list, const char* root, const cpu_set_t* cpus, offpath_cgroups_t* cgroups);

#ifdef __cplusplus
}
#endif

#endif
