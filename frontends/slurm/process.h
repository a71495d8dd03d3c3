// Processes that slurmstepd starts for a step: always as the step's user, and without slurmstepd's protection
// from the kernel's OOM killer. Not thread-safe.
#ifndef OFFPATH_FRONTENDS_SLURM_PROCESS_H
#define OFFPATH_FRONTENDS_SLURM_PROCESS_H

#include "slurm/cores.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    uid_t uid;
    gid_t gid;
    const gid_t* groups;  // supplementary groups, of Slurm
    int group_count;
} offpath_user_t;

typedef struct {
    pid_t pid;   // 0: none runs
    int handle;  // a pidfd: slurmstepd may reap the process before we do, and then its number is free
    int log;     // a memory file with what the process wrote
} offpath_process_t;

// Runs a command, with at most `ms` milliseconds of patience, and returns the first line that it printed
// (`line` is empty if there is none). Its own errors go nowhere. It runs in the control groups of process
// `beside`, a task, so it is part of the step like a task. Then the command is killed, and so is what it
// started in its process group. What has left that group ends with the step.
void offpath_process_ask(const offpath_user_t* user, char* const* command, char* const* environment,
                         pid_t beside, int ms, char* line, size_t bytes);

// Starts a command that says on descriptor 3 when it is ready. It joins the control groups of process
// `beside`, or those above that have `cpus` (cgroups.h), so that Slurm accounts for it and limits it like a
// task. It gets SIGTERM if slurmstepd dies. Returns false if it is not ready after `ms` milliseconds; then it
// has ended.
bool offpath_process_start(const offpath_user_t* user, char* const* command, char* const* environment,
                           pid_t beside, const cpu_set_t* cpus, int ms, offpath_process_t* process);

// Ends the process: by SIGTERM, after `ms` milliseconds by SIGKILL. No effect if none runs.
void offpath_process_end(offpath_process_t* process, int ms);

#ifdef __cplusplus
}
#endif

#endif
