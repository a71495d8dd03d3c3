// The plug-in for Slurm: `srun --offpath` and `sbatch --offpath` (docs/slurm.md).
//
// srun, sbatch and salloc only check the option. The work is slurmstepd's, once for each node of a step, and
// in this order: as the user, before the tasks exist, it chooses the device's cores. When the tasks exist but
// still wait, it finds the program's MPI and starts offpathd, both beside them. Each task takes the front end
// into its environment and leaves the device's cores. When the last task of the node has ended, so does
// offpathd. Nothing of the job runs before there are tasks, or outside their control groups.
//
// The calls of one step come from one thread, so that the state here needs no lock.
#define _GNU_SOURCE
#include "slurm/device.h"
#include "slurm/program.h"

#include <dlfcn.h>
#include <slurm/slurm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

SPANK_PLUGIN(offpath, 1)

static offpath_step_t step;
static char option_text[256];  // what --offpath said; empty: nothing

static int take_option(int val, const char* argument, int remote) {
    offpath_step_options_t checked = step.options;
    char problem[256];
    (void)val;
    snprintf(option_text, sizeof option_text, "%s",
             argument == NULL || *argument == '\0' || strcmp(argument, "(null)") == 0 ? "on" : argument);
    if (offpath_step_options_parse(option_text, &checked, problem, sizeof problem)) return 0;
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

int slurm_spank_init(spank_t spank, int argc, char* argv[]) {
    char problem[256];
    offpath_step_init(&step);
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
    if (option_text[0] == '\0' && offpath_step_has(spank, "OFFPATH_SLURM", inherited, sizeof inherited))
        snprintf(option_text, sizeof option_text, "%s", inherited);
    if (option_text[0] != '\0' &&
        !offpath_step_options_parse(option_text, &step.options, problem, sizeof problem))
        offpath_step_say(&step, "%s", problem);
}

static bool find_user(spank_t spank) {
    offpath_user_t* const user = &step.user;
    return spank_get_item(spank, S_JOB_UID, &user->uid) == ESPANK_SUCCESS &&
           spank_get_item(spank, S_JOB_GID, &user->gid) == ESPANK_SUCCESS &&
           spank_get_item(spank, S_JOB_SUPPLEMENTARY_GIDS, &user->groups, &user->group_count) ==
               ESPANK_SUCCESS;
}

static bool find_libraries(void) {
    Dl_info here;
    if (dladdr(&option, &here) == 0 || realpath(here.dli_fname, step.libraries) == NULL) return false;
    *strrchr(step.libraries, '/') = '\0';
    return strpbrk(step.libraries, " \t:;") == NULL;  // the loader takes LD_PRELOAD apart at these
}

static void front_end_path(offpath_mpi_t mpi, char* path, size_t bytes) {
    snprintf(path, bytes, "%s/%s", step.libraries, offpath_front_end(mpi));
}

// Finds the program's MPI, and says why nothing is offloaded if that is so: unknown.
static offpath_mpi_t find_mpi(spank_t spank, pid_t task) {
    char library[PATH_MAX + 64];
    int words = 0;
    char** word = NULL;
    char** environment = NULL;
    uint32_t node = 0;
    spank_get_item(spank, S_JOB_ARGV, &words, &word);
    spank_get_item(spank, S_JOB_ENV, &environment);
    spank_get_item(spank, S_JOB_NODEID, &node);
    offpath_mpi_t mpi = step.options.mpi;
    if (mpi == OFFPATH_MPI_UNKNOWN)
        mpi = offpath_mpi_of(&step.user, step.libraries, words, word, environment, task);
    if (mpi == OFFPATH_MPI_UNKNOWN) {
        if (node == 0)
            offpath_step_say(
                &step,
                "no MPI library is seen in '%.100s', so nothing is offloaded; say which it uses with "
                "--offpath=mpi=openmpi, mpich or none [OFP-0601]",
                words > 0 ? word[0] : "");
        return OFFPATH_MPI_UNKNOWN;
    }
    if (mpi == OFFPATH_MPI_NONE) return mpi;
    front_end_path(mpi, library, sizeof library);
    if (eaccess(library, R_OK) == 0) return mpi;
    if (node == 0) offpath_step_say(&step, "%s is missing, so nothing is offloaded [OFP-0601]", library);
    return OFFPATH_MPI_UNKNOWN;
}

static void preload(spank_t spank, offpath_mpi_t mpi) {
    char library[PATH_MAX + 64];
    char before[4096];
    char value[sizeof library + sizeof before];
    front_end_path(mpi, library, sizeof library);
    const bool joined = offpath_step_has(spank, "LD_PRELOAD", before, sizeof before);
    snprintf(value, sizeof value, "%s%s%s", library, joined ? " " : "", joined ? before : "");
    spank_setenv(spank, "LD_PRELOAD", value, 1);
}

// A mapping that the tasks share.
static bool make_shared(void) {
    void* const made =
        mmap(NULL, sizeof *step.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    step.shared = made == MAP_FAILED ? NULL : made;
    if (step.shared != NULL) atomic_store(&step.shared->mpi, OFFPATH_MPI_UNKNOWN);
    return step.shared != NULL;
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
        if (option_text[0] != '\0') spank_setenv(spank, "OFFPATH_SLURM", option_text, 1);
        return 0;
    }
    spank_get_item(spank, S_JOB_TOTAL_TASK_COUNT, &all_tasks);
    if (!step.options.on || all_tasks < 2) return 0;
    if (offpath_step_has(spank, "OFFPATH", value, sizeof value) &&
        (strcmp(value, "off") == 0 || strcmp(value, "0") == 0))
        return 0;
    // In a batch script, SLURMD_NODENAME is that of the script's node, and srun passes it on to all nodes.
    gethostname(step.node, sizeof step.node - 1);
    step.node[strcspn(step.node, ".")] = '\0';
    if (!find_user(spank)) {
        offpath_step_say(&step, "Slurm does not name the user, so nothing is offloaded [OFP-0603]");
        return 0;
    }
    spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &step.tasks);
    if (!find_libraries()) {
        offpath_step_say(&step, "the path of the plug-in cannot be preloaded: %s [OFP-0601]", step.libraries);
        return 0;
    }
    if (!make_shared()) {
        offpath_step_say(&step, "no memory, so nothing is offloaded [OFP-0603]");
        return 0;
    }
    // The user's own devices.
    if (offpath_step_has(spank, "OFFPATH_DEVICES", value, sizeof value) ||
        offpath_step_has(spank, "OFFPATH_DIR", value, sizeof value))
        return 0;
    offpath_device_prepare(spank, &step);
    return 0;
}

int slurm_spank_task_post_fork(spank_t spank, int argc, char* argv[]) {
    int task = -1;
    pid_t process = 0;
    (void)argc, (void)argv;
    if (spank_context() != S_CTX_REMOTE || step.shared == NULL) return 0;
    spank_get_item(spank, S_TASK_ID, &task);
    spank_get_item(spank, S_TASK_PID, &process);
    if (task != 0) return 0;
    const offpath_mpi_t mpi = find_mpi(spank, process);
    atomic_store(&step.shared->mpi, (int)mpi);
    if (step.dir[0] == '\0') return 0;
    if (mpi != OFFPATH_MPI_UNKNOWN)
        offpath_device_start(spank, &step, process);
    else
        offpath_device_end(&step);
    return 0;
}

// Runs in the task. Slurm has bound it by now.
int slurm_spank_task_init(spank_t spank, int argc, char* argv[]) {
    (void)argc, (void)argv;
    if (spank_context() != S_CTX_REMOTE || step.shared == NULL) return 0;
    const offpath_mpi_t mpi = (offpath_mpi_t)atomic_load(&step.shared->mpi);
    if (mpi == OFFPATH_MPI_UNKNOWN) {
        if (step.dir[0] != '\0') spank_unsetenv(spank, "OFFPATH_DIR");
        return 0;
    }
    if (mpi != OFFPATH_MPI_NONE) preload(spank, mpi);
    if (step.dir[0] != '\0') offpath_device_leave(&step);
    return 0;
}

int slurm_spank_task_exit(spank_t spank, int argc, char* argv[]) {
    (void)spank, (void)argc, (void)argv;
    if (spank_context() == S_CTX_REMOTE && step.tasks > 0 && --step.tasks == 0) offpath_device_end(&step);
    return 0;
}

// Also for steps whose tasks could not start.
int slurm_spank_exit(spank_t spank, int argc, char* argv[]) {
    (void)spank, (void)argc, (void)argv;
    if (spank_context() != S_CTX_REMOTE) return 0;
    offpath_device_end(&step);
    if (step.shared != NULL) munmap(step.shared, sizeof *step.shared);
    step.shared = NULL;
    return 0;
}
