// Which CPUs of this node the steps of a job use. Slurm tells a step nothing about the job's other steps, so
// each offloaded step claims its CPUs. A claim is the name of a socket without a file (unix(7), abstract):
// the kernel ends it with its process, and /proc/net/unix lists it. Anybody may use such a name, so a claim
// only ever moves a device among the cores of its own job.
#ifndef OFFPATH_FRONTENDS_SLURM_CLAIMS_H
#define OFFPATH_FRONTENDS_SLURM_CLAIMS_H

#include "slurm/cores.h"

#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { OFFPATH_CLAIM_TASKS, OFFPATH_CLAIM_DEVICE } offpath_claim_t;

// Waits until no other step of the job is between lock and unlock, but `ms` milliseconds at most. Returns a
// descriptor, or -1 if another step kept the lock. Closing it unlocks.
int offpath_claims_lock(uint32_t job, int ms);

// Claims `cpus`. Returns a descriptor whose end is the end of the claim, or -1 if the list is too long for a
// name.
int offpath_claim(uint32_t job, uint32_t step, offpath_claim_t kind, const cpu_set_t* cpus);

// Reads all CPUs of the job that are claimed from `list`, normally /proc/net/unix.
void offpath_claims_read(FILE* list, uint32_t job, offpath_claim_t kind, cpu_set_t* cpus);

#ifdef __cplusplus
}
#endif

#endif
