#define _GNU_SOURCE
#include "slurm/process.h"

#include "slurm/cgroups.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ready_descriptor = 3 };

static int remaining_ms(const struct timespec* until) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const long ms = (until->tv_sec - now.tv_sec) * 1000 + (until->tv_nsec - now.tv_nsec) / 1000000;
    return ms < 0 ? 0 : (int)ms;
}

static struct timespec in_ms(int ms) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        ++until.tv_sec;
    }
    return until;
}

// Returns the first byte that arrives before `until`, or -1. Other parts of slurmstepd may interrupt poll.
static int byte_before(int descriptor, const struct timespec* until) {
    for (;;) {
        struct pollfd entry = {.fd = descriptor, .events = POLLIN};
        char byte = 0;
        const int found = poll(&entry, 1, remaining_ms(until));
        if (found < 0 && errno == EINTR) continue;
        if (found <= 0) return -1;
        const ssize_t got = read(descriptor, &byte, 1);
        if (got < 0 && errno == EINTR) continue;
        return got == 1 ? (unsigned char)byte : -1;
    }
}

// The functions below run in the child between fork and exec, so they make system calls only.

// Writes "0" to a file of the kernel. Errors have no effect.
static void write_zero(const char* path) {
    const int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    if (write(file, "0", 1) < 0) errno = 0;
    close(file);
}

static bool become(const offpath_user_t* user) {
    const bool privileged = geteuid() == 0;
    // Slurm protects slurmstepd from the kernel's OOM killer. Programs of users must not inherit that.
    if (privileged) write_zero("/proc/self/oom_score_adj");
    if (privileged && setgroups((size_t)user->group_count, user->groups) != 0) return false;
    if (setresgid(user->gid, user->gid, user->gid) != 0) return false;
    return setresuid(user->uid, user->uid, user->uid) == 0;
}

static _Noreturn void run(const offpath_user_t* user, char* const* command, char* const* environment,
                          int output, int error, int ready) {
    sigset_t none;
    sigemptyset(&none);
    // Jobs get these from their users (`sbatch --signal`). They are not for the device.
    signal(SIGUSR1, SIG_IGN);
    signal(SIGUSR2, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    const int null = open("/dev/null", O_RDWR);
    // The descriptors may have low numbers, so they move up before 0 to 3 are set.
    output = fcntl(output, F_DUPFD, 64);
    error = fcntl(error >= 0 ? error : null, F_DUPFD, 64);
    if (ready >= 0) ready = fcntl(ready, F_DUPFD, 64);
    dup2(null, 0);
    dup2(output, 1);
    dup2(error, 2);
    if (ready >= 0) dup2(ready, ready_descriptor);
    syscall(SYS_close_range, ready_descriptor + (ready >= 0 ? 1 : 0), ~0U, 0);
    if (!become(user)) _exit(126);
    execve(command[0], command, environment);
    dprintf(2, "%s cannot be run: %s [OFP-0603]\n", command[0], strerror(errno));
    _exit(127);
}

// Returns the control groups that a process beside a task joins. Not to be freed.
static const offpath_cgroups_t* groups_of(pid_t task, const cpu_set_t* cpus) {
    static offpath_cgroups_t cgroups;  // large
    char list[64];
    snprintf(list, sizeof list, "/proc/%d/cgroup", (int)task);
    FILE* const groups = fopen(list, "re");
    cgroups.count = 0;
    if (groups != NULL) {
        offpath_cgroups_read(groups, "/sys/fs/cgroup", cpus, &cgroups);
        fclose(groups);
    }
    return &cgroups;
}

static void join(const offpath_cgroups_t* cgroups) {
    for (int i = 0; i < cgroups->count; ++i)
        write_zero(cgroups->files[i]);
}

void offpath_process_ask(const offpath_user_t* user, char* const* command, char* const* environment,
                         pid_t beside, int ms, char* line, size_t bytes) {
    cpu_set_t none;
    int answer[2];
    size_t used = 0;
    line[0] = '\0';
    if (pipe2(answer, O_CLOEXEC) != 0) return;
    CPU_ZERO(&none);
    const offpath_cgroups_t* const cgroups = groups_of(beside, &none);
    const struct timespec until = in_ms(ms);
    const pid_t child = fork();
    // Both processes set the group, because the parent may need it before the child has set it.
    if (child >= 0) setpgid(child, child);
    if (child == 0) {
        join(cgroups);
        run(user, command, environment, answer[1], -1, -1);
    }
    close(answer[1]);
    for (int byte = 0;
         child > 0 && used + 1 < bytes && (byte = byte_before(answer[0], &until)) > 0 && byte != '\n';)
        line[used++] = (char)byte;
    line[used] = '\0';
    close(answer[0]);
    if (child < 0) return;
    kill(-child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
}

bool offpath_process_start(const offpath_user_t* user, char* const* command, char* const* environment,
                           pid_t beside, const cpu_set_t* cpus, int ms, offpath_process_t* process) {
    int ready[2];
    const struct timespec until = in_ms(ms);
    *process = (offpath_process_t){.pid = 0, .handle = -1, .log = memfd_create("offpathd", MFD_CLOEXEC)};
    if (process->log < 0 || pipe2(ready, O_CLOEXEC) != 0) return false;
    const offpath_cgroups_t* const cgroups = groups_of(beside, cpus);
    const pid_t parent = getpid();
    process->pid = fork();
    if (process->pid == 0) {
        join(cgroups);
        // A change of the user would undo the wish for a signal, so it comes before. run() changes nothing
        // more.
        if (!become(user)) _exit(126);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent) _exit(0);
        run(user, command, environment, process->log, process->log, ready[1]);
    }
    close(ready[1]);
    if (process->pid > 0) process->handle = (int)syscall(SYS_pidfd_open, process->pid, 0);
    const bool is_ready = process->pid > 0 && process->handle >= 0 && byte_before(ready[0], &until) == '1';
    close(ready[0]);
    if (!is_ready) offpath_process_end(process, 0);
    return is_ready;
}

void offpath_process_end(offpath_process_t* process, int ms) {
    if (process->pid <= 0) return;
    const int signals[] = {SIGTERM, SIGKILL};
    const int patience[] = {ms, 1000};
    for (int i = 0; i < 2 && process->handle >= 0; ++i) {
        const struct timespec until = in_ms(patience[i]);
        struct pollfd entry = {.fd = process->handle, .events = POLLIN};
        syscall(SYS_pidfd_send_signal, process->handle, signals[i], NULL, 0);
        int ended = 0;
        while ((ended = poll(&entry, 1, remaining_ms(&until))) < 0 && errno == EINTR) {
        }
        if (ended > 0) break;
    }
    waitpid(process->pid, NULL, WNOHANG);
    if (process->handle >= 0) close(process->handle);
    process->handle = -1;
    process->pid = 0;
}
