#define _GNU_SOURCE
#include "slurm/device.h"

#include "slurm/claims.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { lock_ms = 1000, start_ms = 10000, end_ms = 3000, most_log_lines = 5 };

static void allocated(spank_t spank, spank_item_t item, cpu_set_t* cores) {
    char* list = NULL;
    CPU_ZERO(cores);
    if (spank_get_item(spank, item, &list) == ESPANK_SUCCESS && list != NULL) offpath_cpus_parse(list, cores);
}

static void claimed(uint32_t job, offpath_claim_t kind, cpu_set_t* cpus) {
    FILE* const list = fopen("/proc/net/unix", "re");
    CPU_ZERO(cpus);
    if (list == NULL) return;
    offpath_claims_read(list, job, kind, cpus);
    fclose(list);
}

// A step that began earlier had no way to know that Slurm would give this step a core of its device.
static void say_met(const offpath_step_t* step, const cpu_set_t* mine, const cpu_set_t* devices) {
    char list[4096];
    cpu_set_t common;
    CPU_AND(&common, mine, devices);
    if (!step->place.shared && CPU_COUNT(&common) > 0 && offpath_cpus_format(&common, list, sizeof list))
        offpath_step_say(step,
                         "core %s of the step has the device of another step of the job, which is slow; run "
                         "these steps in jobs of their own [OFP-0602]",
                         list);
}

static void place_device(spank_t spank, offpath_step_t* step) {
    static offpath_cores_t cores;  // large
    cpu_set_t of_step;
    cpu_set_t of_job;
    cpu_set_t mine;
    cpu_set_t others;
    cpu_set_t devices;
    uint32_t each = 1;
    uint32_t job = 0;
    uint32_t number = 0;
    CPU_ZERO(&step->place.cpus);
    if (!offpath_cores_read("/sys/devices/system/cpu", &cores)) return;
    allocated(spank, S_STEP_ALLOC_CORES, &of_step);
    allocated(spank, S_JOB_ALLOC_CORES, &of_job);
    spank_get_item(spank, S_STEP_CPUS_PER_TASK, &each);
    spank_get_item(spank, S_JOB_ID, &job);
    spank_get_item(spank, S_JOB_STEPID, &number);
    offpath_cores_cpus(&cores, &of_step, &mine);
    const int lock = offpath_claims_lock(job, lock_ms);
    claimed(job, OFFPATH_CLAIM_TASKS, &others);
    claimed(job, OFFPATH_CLAIM_DEVICE, &devices);
    CPU_OR(&others, &others, &devices);
    offpath_device_place(&cores, &of_step, &of_job, &others, (size_t)step->tasks * each, step->options.cores,
                         &step->place);
    step->claims[0] = offpath_claim(job, number, OFFPATH_CLAIM_TASKS, &mine);
    step->claims[1] = offpath_claim(job, number, OFFPATH_CLAIM_DEVICE, &step->place.cpus);
    if (lock >= 0) close(lock);
    say_met(step, &mine, &devices);
}

static void make_directory(spank_t spank, offpath_step_t* step) {
    uint32_t job = 0;
    uint32_t number = 0;
    spank_get_item(spank, S_JOB_ID, &job);
    spank_get_item(spank, S_JOB_STEPID, &number);
    snprintf(step->dir, sizeof step->dir, "%s/offpath-slurm-%u.%u-XXXXXX", step->options.dir, job, number);
    if (mkdtemp(step->dir) == NULL) {
        offpath_step_say(step, "no directory can be made in %s, so nothing is offloaded: %s [OFP-0603]",
                         step->options.dir, strerror(errno));
        step->dir[0] = '\0';
        return;
    }
    step->dir_descriptor = open(step->dir, O_DIRECTORY | O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    spank_setenv(spank, "OFFPATH_DIR", step->dir, 1);
}

void offpath_device_prepare(spank_t spank, offpath_step_t* step) {
    place_device(spank, step);
    make_directory(spank, step);
}

// The environment of offpathd: the job's, without what is preloaded into the tasks. To be freed.
static char** device_environment(spank_t spank) {
    char** all = NULL;
    size_t count = 0;
    if (spank_get_item(spank, S_JOB_ENV, &all) != ESPANK_SUCCESS || all == NULL)
        return calloc(1, sizeof *all);
    while (all[count] != NULL)
        ++count;
    char** const kept = calloc(count + 1, sizeof *kept);
    for (size_t i = 0, used = 0; kept != NULL && i < count; ++i)
        if (strncmp(all[i], "LD_PRELOAD=", strlen("LD_PRELOAD=")) != 0) kept[used++] = all[i];
    return kept;
}

void offpath_device_start(spank_t spank, offpath_step_t* step, pid_t first_task) {
    char program[PATH_MAX + 64];
    char cpus[4096] = "all";
    char level[32];
    char proxies[32];
    char spin_us[32];
    char own_program[PATH_MAX];
    snprintf(program, sizeof program, "%s/../bin/offpathd", step->libraries);
    if (CPU_COUNT(&step->place.cpus) > 0) offpath_cpus_format(&step->place.cpus, cpus, sizeof cpus);
    char* command[20] = {program, "--dir",      step->dir, "--name",      step->node, "--cpus",
                         cpus,    "--ready-fd", "3",       "--log-level", level};
    int words = 11;
    if (!offpath_step_has(spank, "OFFPATH_DAEMON_LOG_LEVEL", level, sizeof level)) strcpy(level, "warn");
    if (offpath_step_has(spank, "OFFPATH_DAEMON", own_program, sizeof own_program)) command[0] = own_program;
    if (offpath_step_has(spank, "OFFPATH_PROXIES", proxies, sizeof proxies)) {
        command[words++] = "--proxies";
        command[words++] = proxies;
    }
    if (offpath_step_has(spank, "OFFPATH_SPIN_US", spin_us, sizeof spin_us)) {
        command[words++] = "--spin-us";
        command[words++] = spin_us;
    }
    char** const environment = device_environment(spank);
    if (environment == NULL || !offpath_process_start(&step->user, command, environment, first_task,
                                                      &step->place.cpus, start_ms, &step->device))
        offpath_step_say(step, "the device did not start, so nothing is offloaded [OFP-0603]");
    free(environment);
}

static void say_shared(const offpath_step_t* step, const cpu_set_t* cpus) {
    char list[4096];
    if (atomic_exchange(&step->shared->told, true) || !offpath_cpus_format(cpus, list, sizeof list)) return;
    if (step->place.shared)
        offpath_step_say(
            step,
            "the step has no core that its tasks leave free: they share core %s with the device, which is "
            "slow; ask for one core more on each node [OFP-0602]",
            list);
    else
        offpath_step_say(step,
                         "a task is bound to core %s of the device, which is slow; leave this core out of "
                         "--cpu-bind [OFP-0602]",
                         list);
}

void offpath_device_leave(const offpath_step_t* step) {
    cpu_set_t mine;
    cpu_set_t common;
    if (sched_getaffinity(0, sizeof mine, &mine) != 0) return;
    CPU_AND(&common, &mine, &step->place.cpus);
    if (CPU_COUNT(&common) == 0) return;
    CPU_XOR(&mine, &mine, &common);
    if (step->place.shared || CPU_COUNT(&mine) == 0)
        say_shared(step, &common);
    else
        sched_setaffinity(0, sizeof mine, &mine);
}

static void show_log(const offpath_step_t* step) {
    char text[4096];
    const off_t size = lseek(step->device.log, 0, SEEK_END);
    const off_t from = size >= (off_t)sizeof text ? size - (off_t)sizeof text + 1 : 0;
    const ssize_t got = size <= 0 ? 0 : pread(step->device.log, text, sizeof text - 1, from);
    if (got <= 0) return;
    text[got] = '\0';
    char* begin = text + got;
    for (int lines = 0; begin > text; --begin)
        if (begin[-1] == '\n' && lines++ == most_log_lines) break;
    char* rest = NULL;
    for (char* line = strtok_r(begin, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        offpath_step_say(step, "device: %s", line);
}

void offpath_device_end(offpath_step_t* step) {
    if (step->dir[0] == '\0') return;
    offpath_process_end(&step->device, end_ms);
    if (step->device.log >= 0) {
        show_log(step);
        close(step->device.log);
    }
    if (step->dir_descriptor >= 0) {
        // A daemon that was killed has left its files.
        char host[256] = "";
        const char* const ends[] = {"sock", "pid", "port"};
        gethostname(host, sizeof host - 1);
        for (int i = 0; i < 3; ++i) {
            char name[sizeof host + 8];
            snprintf(name, sizeof name, "%s.%s", host, ends[i]);
            unlinkat(step->dir_descriptor, name, 0);
        }
        unlinkat(step->dir_descriptor, "control", 0);
        close(step->dir_descriptor);
    }
    rmdir(step->dir);
    step->dir[0] = '\0';
    for (int i = 0; i < 2; ++i) {
        if (step->claims[i] >= 0) close(step->claims[i]);
        step->claims[i] = -1;
    }
}
