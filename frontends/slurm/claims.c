#define _GNU_SOURCE
#include "slurm/claims.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char* const kinds[] = {[OFFPATH_CLAIM_TASKS] = "tasks", [OFFPATH_CLAIM_DEVICE] = "device"};

// Takes a name. Returns -1, and sets errno, if another process has it.
static int take(const char* name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t length = strlen(name);
    if (length + 1 > sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    const int taken = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (taken < 0) return -1;
    memcpy(address.sun_path + 1, name, length);
    const socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
    if (bind(taken, (const struct sockaddr*)&address, bytes) == 0) return taken;
    const int problem = errno;
    close(taken);
    errno = problem;
    return -1;
}

int offpath_claims_lock(uint32_t job, int ms) {
    enum { pause_ms = 5 };
    char name[64];
    snprintf(name, sizeof name, "offpath-slurm/%u/lock", job);
    for (int left = ms;; left -= pause_ms) {
        const int lock = take(name);
        if (lock >= 0 || errno != EADDRINUSE || left <= 0) return lock;
        poll(NULL, 0, pause_ms);
    }
}

int offpath_claim(uint32_t job, uint32_t step, offpath_claim_t kind, const cpu_set_t* cpus) {
    char list[64];
    char name[128];
    if (!offpath_cpus_format(cpus, list, sizeof list)) return -1;
    snprintf(name, sizeof name, "offpath-slurm/%u/%u/%s/%s", job, step, kinds[kind], list);
    return take(name);
}

void offpath_claims_read(FILE* list, uint32_t job, offpath_claim_t kind, cpu_set_t* cpus) {
    char begin[64];
    char middle[16];
    char line[512];
    CPU_ZERO(cpus);
    snprintf(begin, sizeof begin, " @offpath-slurm/%u/", job);
    snprintf(middle, sizeof middle, "/%s/", kinds[kind]);
    while (fgets(line, sizeof line, list) != NULL) {
        cpu_set_t claimed;
        const char* word = strstr(line, begin);
        if (word == NULL || (word = strstr(word + strlen(begin), middle)) == NULL) continue;
        if (offpath_cpus_parse(word + strlen(middle), &claimed)) CPU_OR(cpus, cpus, &claimed);
    }
}
