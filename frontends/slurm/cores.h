// Chooses the cores of a step's device. Slurm counts a node's cores; this file also finds their CPUs.
#ifndef OFFPATH_FRONTENDS_SLURM_CORES_H
#define OFFPATH_FRONTENDS_SLURM_CORES_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Cores and CPUs alike have numbers below CPU_SETSIZE.
typedef struct {
    size_t count;
    cpu_set_t cpus[CPU_SETSIZE];  // of each core, in Slurm's order
} offpath_cores_t;

typedef struct {
    cpu_set_t cpus;  // of the device; empty: the allocation is unknown
    bool shared;     // tasks need these CPUs, too
} offpath_device_place_t;

// Reads a list such as `0-3,8`. Returns false, and an empty set, if the text is none.
bool offpath_cpus_parse(const char* text, cpu_set_t* set);
// Writes such a list. Returns false if it does not fit.
bool offpath_cpus_format(const cpu_set_t* set, char* text, size_t bytes);

// Reads the machine's cores from `root`, normally /sys/devices/system/cpu. Slurm counts them package by
// package; within a package the core with the lowest CPU comes first. Returns false if there are none.
bool offpath_cores_read(const char* root, offpath_cores_t* cores);

// The CPUs of some cores.
void offpath_cores_cpus(const offpath_cores_t* cores, const cpu_set_t* some, cpu_set_t* cpus);

// Chooses `wanted` cores. `step` and `job` are the cores allocated on this node, by Slurm's numbers; `others`
// are the CPUs that other steps of the job use; `task_cpus` is the number of CPUs that the node's tasks asked
// for. Cores of the step that its tasks do not need come first, from the last on: Slurm binds tasks to the
// first ones. Then come cores of the job outside the step that no other step uses. If there are none either,
// the device shares the step's last cores with the tasks.
void offpath_device_place(const offpath_cores_t* cores, const cpu_set_t* step, const cpu_set_t* job,
                          const cpu_set_t* others, size_t task_cpus, unsigned wanted,
                          offpath_device_place_t* place);

#ifdef __cplusplus
}
#endif

#endif
