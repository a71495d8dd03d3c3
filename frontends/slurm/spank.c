// The plug-in for Slurm: `srun --offpath` and `sbatch --offpath` (docs/slurm.md).
//
// srun, sbatch and salloc only check the option. The work is slurmstepd's, once for each node of a step, and
// in this order: as the user, before the tasks exist, it finds the program's MPI, chooses the device's cores
// and sets the tasks' environment. When the tasks exist but still wait, it starts offpathd beside them. Each
// task leaves the device's cores. When the last task of the node has ended, so does offpathd.
//
// The calls of one step come from one thread, so that the state here needs no lock.
#define _GNU_SOURCE
#include "slurm/cores.h"
#include "slurm/options.h"
#include "slurm/process.h"
#include "slurm/program.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SPANK_PLUGIN(offpath, 1)

enum { start_ms = 10000, end_ms = 3000, most_log_lines = 5 };

static struct {
    offpath_step_options_t options;
    char option[256];  // what --offpath said; empty: nothing
    char node[256];
    offpath_user_t user;
    char libraries[PATH_MAX];  // the folder that this plug-in is in
    char dir[PATH_MAX];        // of the step; empty: no daemon is to start
    int dir_descriptor;        // the user may rename the directory, so its files are removed through this
    offpath_device_place_t place;
    offpath_process_t device;
    uint32_t tasks;  // of this node, that have not ended
} step;

static int take_option(int val, const char* argument, int remote) {
    offpath_step_options_t checked = step.options;
    char problem[256];
    (void)val;
    snprintf(step.option, sizeof step.option, "%s",
             argument == NULL || *argument == '\0' || strcmp(argument, "(null)") == 0 ? "on" : argument);
    if (offpath_step_options_parse(step.option, &checked, problem, sizeof problem)) return 0;
    if (remote == 0) slurm_error("%s", problem);
    return -1;
}

static struct spank_option option = {
    .name = "offpath",
    .arginfo = "[on|off|cores=N|mpi=openmpi|mpich|none]",
    .usage = "have MPI communication done by a device on spare cores of the allocation",
    .has_arg = 2,
    .val = 0,
    .cb = take_option,
};

__attribute__((format(printf, 1, 2))) static void say(const char* format, ...) {
    char text[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    slurm_spank_log("offpath: %s%s%s", step.node, step.node[0] == '\0' ? "" : ": ", text);
}

static bool has(spank_t spank, const char* variable, char* value, size_t bytes) {
    return spank_getenv(spank, variable, value, (int)bytes) == ESPANK_SUCCESS && *value != '\0';
}

int slurm_spank_init(spank_t spank, int argc, char* argv[]) {
    char problem[256];
    offpath_step_options_init(&step.options);
    step.dir_descriptor = -1;
    step.device = (offpath_process_t){.handle = -1, .log = -1};
    for (int i = 0; i < argc; ++i)
        if (!offpath_step_options_argument(argv[i], &step.options, problem, sizeof problem))
            slurm_error("%s", problem);
    if (spank_context() == S_CTX_LOCAL || spank_context() == S_CTX_ALLOCATOR ||
        spank_context() == S_CTX_REMOTE)
        return spank_option_register(spank, &option) == ESPANK_SUCCESS ? 0 : -1;
    return 0;
}

// Reads the option, or what sbatch's option left in the environment. Steps of a job inherit it.
static void read_options(spank_t spank) {
    char problem[256];
    char inherited[256];
    if (step.option[0] == '\0' && has(spank, "OFFPATH_SLURM", inherited, sizeof inherited))
        snprintf(step.option, sizeof step.option, "%s", inherited);
    if (step.option[0] != '\0' &&
        !offpath_step_options_parse(step.option, &step.options, problem, sizeof problem))
        say("%s", problem);
}

static bool find_libraries(void) {
    Dl_info here;
    if (dladdr(&option, &here) == 0 || realpath(here.dli_fname, step.libraries) == NULL) return false;
    *strrchr(step.libraries, '/') = '\0';
    return strpbrk(step.libraries, " \t:;") == NULL;  // the loader takes LD_PRELOAD apart at these
}

// Sets LD_PRELOAD. Returns false if the program's MPI is not known.
static bool preload(spank_t spank) {
    char library[PATH_MAX + 64];
    char before[4096];
    char value[sizeof library + sizeof before];
    int words = 0;
    char** word = NULL;
    char** environment = NULL;
    uint32_t node = 0;
    spank_get_item(spank, S_JOB_ARGV, &words, &word);
    spank_get_item(spank, S_JOB_ENV, &environment);
    spank_get_item(spank, S_JOB_NODEID, &node);
    offpath_mpi_t mpi = step.options.mpi;
    if (mpi == OFFPATH_MPI_UNKNOWN)
        mpi = offpath_mpi_of(&step.user, step.libraries, words, word, environment);
    if (mpi == OFFPATH_MPI_UNKNOWN) {
        if (node == 0)
            say("no MPI library is seen in '%.100s', so nothing is offloaded; say which it uses with "
                "--offpath=mpi=openmpi, mpich or none [OFP-0601]",
                words > 0 ? word[0] : "");
        return false;
    }
    if (mpi == OFFPATH_MPI_NONE) return true;
    snprintf(library, sizeof library, "%s/%s", step.libraries, offpath_front_end(mpi));
    if (access(library, R_OK) != 0) {
        if (node == 0) say("%s is missing, so nothing is offloaded [OFP-0601]", library);
        return false;
    }
    const bool joined = has(spank, "LD_PRELOAD", before, sizeof before);
    snprintf(value, sizeof value, "%s%s%s", library, joined ? " " : "", joined ? before : "");
    return spank_setenv(spank, "LD_PRELOAD", value, 1) == ESPANK_SUCCESS;
}

static void allocated(spank_t spank, spank_item_t item, cpu_set_t* cores) {
    char* list = NULL;
    CPU_ZERO(cores);
    if (spank_get_item(spank, item, &list) == ESPANK_SUCCESS && list != NULL) offpath_cpus_parse(list, cores);
}

static void place_device(spank_t spank) {
    static offpath_cores_t cores;  // large
    cpu_set_t of_step;
    cpu_set_t of_job;
    uint32_t each = 1;
    char list[4096];
    CPU_ZERO(&step.place.cpus);
    if (!offpath_cores_read("/sys/devices/system/cpu", &cores)) return;
    allocated(spank, S_STEP_ALLOC_CORES, &of_step);
    allocated(spank, S_JOB_ALLOC_CORES, &of_job);
    spank_get_item(spank, S_STEP_CPUS_PER_TASK, &each);
    offpath_device_place(&cores, &of_step, &of_job, (size_t)step.tasks * each, step.options.cores,
                         &step.place);
    if (step.place.shared && offpath_cpus_format(&step.place.cpus, list, sizeof list))
        say("the step has no core that its tasks leave free: they share core %s with the device, which is "
            "slow; ask for one core more on each node [OFP-0602]",
            list);
}

// Makes the directory in which the tasks find their device.
static bool make_directory(spank_t spank) {
    uint32_t job = 0;
    uint32_t number = 0;
    spank_get_item(spank, S_JOB_ID, &job);
    spank_get_item(spank, S_JOB_STEPID, &number);
    snprintf(step.dir, sizeof step.dir, "%s/offpath-slurm-%u.%u-XXXXXX", step.options.dir, job, number);
    if (mkdtemp(step.dir) == NULL) {
        say("no directory can be made in %s, so nothing is offloaded: %s [OFP-0603]", step.options.dir,
            strerror(errno));
        step.dir[0] = '\0';
        return false;
    }
    step.dir_descriptor = open(step.dir, O_DIRECTORY | O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return spank_setenv(spank, "OFFPATH_DIR", step.dir, 1) == ESPANK_SUCCESS;
}

// Runs with the user's rights, before there are tasks.
int slurm_spank_user_init(spank_t spank, int argc, char* argv[]) {
    char value[256];
    uint32_t number = 0;
    uint32_t all_tasks = 0;
    (void)argc, (void)argv;
    if (spank_context() != S_CTX_REMOTE) return 0;
    read_options(spank);
    spank_get_item(spank, S_JOB_STEPID, &number);
    if (number > SLURM_MAX_NORMAL_STEP_ID) {
        // A script of sbatch, or a shell of salloc. Its own commands are not the job's program.
        if (step.option[0] != '\0') spank_setenv(spank, "OFFPATH_SLURM", step.option, 1);
        return 0;
    }
    spank_get_item(spank, S_JOB_TOTAL_TASK_COUNT, &all_tasks);
    if (!step.options.on || all_tasks < 2) return 0;
    if (has(spank, "OFFPATH", value, sizeof value) && (strcmp(value, "off") == 0 || strcmp(value, "0") == 0))
        return 0;
    if (!has(spank, "SLURMD_NODENAME", step.node, sizeof step.node))
        gethostname(step.node, sizeof step.node - 1);
    spank_get_item(spank, S_JOB_UID, &step.user.uid);
    spank_get_item(spank, S_JOB_GID, &step.user.gid);
    spank_get_item(spank, S_JOB_SUPPLEMENTARY_GIDS, &step.user.groups, &step.user.group_count);
    spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &step.tasks);
    if (!find_libraries()) {
        say("the path of the plug-in cannot be preloaded: %s [OFP-0601]", step.libraries);
        return 0;
    }
    if (!preload(spank)) return 0;
    // The user's own devices.
    if (has(spank, "OFFPATH_DEVICES", value, sizeof value) || has(spank, "OFFPATH_DIR", value, sizeof value))
        return 0;
    place_device(spank);
    make_directory(spank);
    return 0;
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

static void start_device(spank_t spank, pid_t first_task) {
    char program[PATH_MAX + 64];
    char cpus[4096] = "all";
    char level[32] = "warn";
    char proxies[32];
    char spin_us[32];
    char own_program[PATH_MAX];
    snprintf(program, sizeof program, "%s/../bin/offpathd", step.libraries);
    if (CPU_COUNT(&step.place.cpus) > 0) offpath_cpus_format(&step.place.cpus, cpus, sizeof cpus);
    char* command[20] = {program, "--dir",      step.dir, "--name",      step.node, "--cpus",
                         cpus,    "--ready-fd", "3",      "--log-level", level};
    int words = 11;
    has(spank, "OFFPATH_DAEMON_LOG_LEVEL", level, sizeof level);
    if (has(spank, "OFFPATH_DAEMON", own_program, sizeof own_program)) command[0] = own_program;
    if (has(spank, "OFFPATH_PROXIES", proxies, sizeof proxies)) {
        command[words++] = "--proxies";
        command[words++] = proxies;
    }
    if (has(spank, "OFFPATH_SPIN_US", spin_us, sizeof spin_us)) {
        command[words++] = "--spin-us";
        command[words++] = spin_us;
    }
    char** const environment = device_environment(spank);
    if (environment == NULL || !offpath_process_start(&step.user, command, environment, first_task,
                                                      &step.place.cpus, start_ms, &step.device))
        say("the device did not start, so nothing is offloaded [OFP-0603]");
    free(environment);
}

int slurm_spank_task_post_fork(spank_t spank, int argc, char* argv[]) {
    int task = -1;
    pid_t process = 0;
    (void)argc, (void)argv;
    if (spank_context() != S_CTX_REMOTE || step.dir[0] == '\0') return 0;
    spank_get_item(spank, S_TASK_ID, &task);
    spank_get_item(spank, S_TASK_PID, &process);
    if (task == 0) start_device(spank, process);
    return 0;
}

// Runs in the task. Slurm has bound it by now.
int slurm_spank_task_init(spank_t spank, int argc, char* argv[]) {
    cpu_set_t mine;
    cpu_set_t device;
    (void)spank, (void)argc, (void)argv;
    if (spank_context() != S_CTX_REMOTE || step.dir[0] == '\0') return 0;
    if (sched_getaffinity(0, sizeof mine, &mine) != 0) return 0;
    CPU_AND(&device, &mine, &step.place.cpus);
    CPU_XOR(&mine, &mine, &device);
    if (CPU_COUNT(&device) > 0 && CPU_COUNT(&mine) > 0) sched_setaffinity(0, sizeof mine, &mine);
    return 0;
}

static void show_log(void) {
    char text[4096];
    const off_t size = lseek(step.device.log, 0, SEEK_END);
    const off_t from = size >= (off_t)sizeof text ? size - (off_t)sizeof text + 1 : 0;
    const ssize_t got = size <= 0 ? 0 : pread(step.device.log, text, sizeof text - 1, from);
    if (got <= 0) return;
    text[got] = '\0';
    char* begin = text + got;
    for (int lines = 0; begin > text; --begin)
        if (begin[-1] == '\n' && lines++ == most_log_lines) break;
    char* rest = NULL;
    for (char* line = strtok_r(begin, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        say("device: %s", line);
}

static void end_device(void) {
    if (step.dir[0] == '\0') return;
    offpath_process_end(&step.device, end_ms);
    if (step.device.log >= 0) {
        show_log();
        close(step.device.log);
    }
    if (step.dir_descriptor >= 0) {
        // A daemon that was killed has left its files.
        char host[256] = "";
        const char* const ends[] = {"sock", "pid", "port"};
        gethostname(host, sizeof host - 1);
        for (int i = 0; i < 3; ++i) {
            char name[sizeof host + 8];
            snprintf(name, sizeof name, "%s.%s", host, ends[i]);
            unlinkat(step.dir_descriptor, name, 0);
        }
        unlinkat(step.dir_descriptor, "control", 0);
        close(step.dir_descriptor);
    }
    rmdir(step.dir);
    step.dir[0] = '\0';
}

int slurm_spank_task_exit(spank_t spank, int argc, char* argv[]) {
    (void)spank, (void)argc, (void)argv;
    if (spank_context() == S_CTX_REMOTE && step.tasks > 0 && --step.tasks == 0) end_device();
    return 0;
}

// Also for steps whose tasks could not start.
int slurm_spank_exit(spank_t spank, int argc, char* argv[]) {
    (void)spank, (void)argc, (void)argv;
    if (spank_context() == S_CTX_REMOTE) end_device();
    return 0;
}
