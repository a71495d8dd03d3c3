#define _GNU_SOURCE
#include "slurm/cgroups.h"

#include <string.h>
#include <unistd.h>

static bool has_cpus(const char* folder, const cpu_set_t* cpus) {
    char path[PATH_MAX];
    char line[4096] = "";
    cpu_set_t set;
    cpu_set_t common;
    if (snprintf(path, sizeof path, "%s/cpuset.cpus", folder) >= (int)sizeof path) return true;
    FILE* const file = fopen(path, "re");
    if (file == NULL) return true;
    const bool read = fgets(line, sizeof line, file) != NULL && offpath_cpus_parse(line, &set);
    fclose(file);
    if (!read) return false;
    CPU_AND(&common, &set, cpus);
    return CPU_EQUAL(&common, cpus);
}

// Replaces `folder`, a cpuset, by the nearest one above it that has `cpus`, if there is one in the job.
// Cpusets above the job's, which Slurm names job_NUMBER, have cores of other jobs.
static void find_cpuset(char* folder, const cpu_set_t* cpus) {
    char above[PATH_MAX];
    const char* job = NULL;
    for (const char* found = folder; (found = strstr(found, "/job_")) != NULL; ++found)
        job = found;
    if (job == NULL) return;
    strcpy(above, folder);
    while (!has_cpus(above, cpus)) {
        char* const last = strrchr(above, '/');
        if (last - above <= job - folder) return;
        *last = '\0';
    }
    strcpy(folder, above);
}

// The folder of the group, which is `line` after its number, or an empty string.
static void find_folder(char* line, const char* root, const cpu_set_t* cpus, char* folder, size_t bytes) {
    char above[PATH_MAX];
    char* const path = strchr(line, ':');
    folder[0] = '\0';
    if (path == NULL) return;
    *path = '\0';
    path[strcspn(path + 1, "\n") + 1] = '\0';
    if (strcmp(path + 1, "/") == 0) return;
    const char* name = strncmp(line, "name=", 5) == 0 ? line + 5 : line;
    snprintf(above, sizeof above, "%s/unified", root);
    // The unified hierarchy has no name. Beside hierarchies of version 1 it is in a folder of its own.
    if (*name == '\0' && access(above, F_OK) == 0) name = "unified";
    const int top = snprintf(folder, bytes, "%s/%s", root, name);
    const int length =
        top + snprintf(folder + top, top < (int)bytes ? bytes - (size_t)top : 0, "%s", path + 1);
    if (length + (int)sizeof "/cgroup.procs" > (int)bytes) {
        folder[0] = '\0';
        return;
    }
    if (strcmp(name, "cpuset") == 0) find_cpuset(folder, cpus);
}

void offpath_cgroups_read(FILE* list, const char* root, const cpu_set_t* cpus, offpath_cgroups_t* cgroups) {
    char line[PATH_MAX];
    cgroups->count = 0;
    while (cgroups->count < OFFPATH_MOST_CGROUPS && fgets(line, sizeof line, list) != NULL) {
        char* const file = cgroups->files[cgroups->count];
        char* const controllers = strchr(line, ':');
        if (controllers == NULL) continue;
        find_folder(controllers + 1, root, cpus, file, PATH_MAX);
        if (file[0] == '\0') continue;
        strcat(file, "/cgroup.procs");
        ++cgroups->count;
    }
}
