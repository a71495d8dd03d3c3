#include "slurm/cores.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool offpath_cpus_parse(const char* text, cpu_set_t* set) {
    CPU_ZERO(set);
    while (*text >= '0' && *text <= '9') {
        char* end = NULL;
        const unsigned long first = strtoul(text, &end, 10);
        unsigned long last = first;
        if (*end == '-') last = strtoul(text = end + 1, &end, 10);
        if (end == text || last < first || last >= CPU_SETSIZE) break;
        for (unsigned long i = first; i <= last; ++i)
            CPU_SET(i, set);
        text = end;
        if (*text == '\0' || *text == '\n') return true;
        if (*text++ != ',') break;
    }
    CPU_ZERO(set);
    return false;
}

bool offpath_cpus_format(const cpu_set_t* set, char* text, size_t bytes) {
    size_t used = 0;
    if (bytes == 0) return false;
    text[0] = '\0';
    for (int first = 0; first < CPU_SETSIZE; ++first) {
        if (!CPU_ISSET(first, set)) continue;
        int last = first;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, set))
            ++last;
        const char* const comma = used == 0 ? "" : ",";
        const int more = last == first ? snprintf(text + used, bytes - used, "%s%d", comma, first)
                                       : snprintf(text + used, bytes - used, "%s%d-%d", comma, first, last);
        if (more < 0 || (size_t)more >= bytes - used) return false;
        used += (size_t)more;
        first = last;
    }
    return true;
}

static bool read_line(const char* root, int cpu, const char* name, char* line, size_t bytes) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/cpu%d/topology/%s", root, cpu, name);
    FILE* const file = fopen(path, "re");
    if (file == NULL) return false;
    const bool read = fgets(line, (int)bytes, file) != NULL;
    fclose(file);
    return read;
}

static int lowest(const cpu_set_t* set) {
    for (int i = 0; i < CPU_SETSIZE; ++i)
        if (CPU_ISSET(i, set)) return i;
    return -1;
}

bool offpath_cores_read(const char* root, offpath_cores_t* cores) {
    int packages[CPU_SETSIZE];
    int first_of[CPU_SETSIZE];
    int found = 0;
    cores->count = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        char line[4096];
        cpu_set_t siblings;
        if (!read_line(root, cpu, "thread_siblings_list", line, sizeof line)) continue;
        if (!offpath_cpus_parse(line, &siblings) || lowest(&siblings) != cpu) continue;
        packages[found] = read_line(root, cpu, "physical_package_id", line, sizeof line) ? atoi(line) : 0;
        first_of[found] = cpu;
        cores->cpus[found++] = siblings;
    }
    // The cores are in the order of their lowest CPUs. A stable sort by package keeps it within packages, and
    // orders packages by their lowest CPU.
    cpu_set_t sorted[CPU_SETSIZE];
    for (int i = 0; i < found; ++i) {
        if (first_of[i] < 0) continue;
        for (int j = i; j < found; ++j) {
            if (first_of[j] < 0 || packages[j] != packages[i]) continue;
            sorted[cores->count++] = cores->cpus[j];
            if (j != i) first_of[j] = -1;
        }
        first_of[i] = -1;
    }
    memcpy(cores->cpus, sorted, cores->count * sizeof sorted[0]);
    return cores->count > 0;
}

// Adds the last `wanted` cores of `set` to the place. Returns false, and changes nothing, if there are fewer.
static bool take_last(const offpath_cores_t* cores, const cpu_set_t* set, unsigned wanted,
                      offpath_device_place_t* place) {
    cpu_set_t taken;
    CPU_ZERO(&taken);
    for (size_t i = cores->count; i-- > 0 && wanted > 0;) {
        if (!CPU_ISSET(i, set)) continue;
        CPU_OR(&taken, &taken, &cores->cpus[i]);
        --wanted;
    }
    if (wanted > 0 || CPU_COUNT(&taken) == 0) return false;
    place->cpus = taken;
    return true;
}

void offpath_cores_cpus(const offpath_cores_t* cores, const cpu_set_t* some, cpu_set_t* cpus) {
    CPU_ZERO(cpus);
    for (size_t i = 0; i < cores->count; ++i)
        if (CPU_ISSET(i, some)) CPU_OR(cpus, cpus, &cores->cpus[i]);
}

// Leaves out the cores that have one of `cpus`.
static void leave_out(const offpath_cores_t* cores, const cpu_set_t* cpus, cpu_set_t* set) {
    for (size_t i = 0; i < cores->count; ++i) {
        cpu_set_t common;
        CPU_AND(&common, &cores->cpus[i], cpus);
        if (CPU_COUNT(&common) > 0) CPU_CLR(i, set);
    }
}

void offpath_device_place(const offpath_cores_t* cores, const cpu_set_t* step, const cpu_set_t* job,
                          const cpu_set_t* others, size_t task_cpus, unsigned wanted,
                          offpath_device_place_t* place) {
    cpu_set_t outside;
    cpu_set_t cpus;
    CPU_ZERO(&place->cpus);
    place->shared = false;
    offpath_cores_cpus(cores, step, &cpus);
    if (take_last(cores, step, wanted, place) &&
        task_cpus + (size_t)CPU_COUNT(&place->cpus) <= (size_t)CPU_COUNT(&cpus))
        return;
    CPU_XOR(&outside, job, step);
    CPU_AND(&outside, &outside, job);
    leave_out(cores, others, &outside);
    if (take_last(cores, &outside, wanted, place)) return;
    place->shared = true;
    for (unsigned fewer = wanted; fewer > 0; --fewer)
        if (take_last(cores, step, fewer, place)) return;
}
