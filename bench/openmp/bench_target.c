/* Times target regions of the device that OpenMP finds: empty regions, transfers in both directions, regions
 * that run side by side, and a chain of regions that the host does not wait for one by one. Prints one JSON
 * object: rows of test, bytes or regions, and the medians of the times in seconds.
 *
 *     bench-target [REPEATS] */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { most_repeats = 10000, region_us = 1000 };

static double times[most_repeats];
static int rows = 0;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static void report(const char* test, const char* unit, long amount, int repeats) {
    qsort(times, (size_t)repeats, sizeof *times, compare);
    printf("%s{\"test\": \"%s\", \"%s\": %ld, \"seconds\": %.9f, \"best_seconds\": %.9f}", rows++ ? ", " : "",
           test, unit, amount, times[repeats / 2], times[0]);
}

static void empty_regions(int repeats) {
    for (int i = -10; i < repeats; i++) {
        const double begin = now();
#pragma omp target
        {}
        if (i >= 0) times[i] = now() - begin;
    }
    report("empty_region", "bytes", 0, repeats);
    int x = 0;
    for (int i = -10; i < repeats; i++) {
        const double begin = now();
#pragma omp target map(tofrom : x)
        x++;
        if (i >= 0) times[i] = now() - begin;
    }
    report("region_with_int", "bytes", (long)sizeof x, repeats);
}

static void transfers(long bytes, int repeats) {
    char* data = aligned_alloc(64, (size_t)bytes);
    memset(data, 1, (size_t)bytes);
#pragma omp target enter data map(to : data[0 : bytes])
    for (int i = 0; i < repeats; i++) {
        const double begin = now();
#pragma omp target update to(data[0 : bytes])
        times[i] = now() - begin;
    }
    report("map_to", "bytes", bytes, repeats);
    for (int i = 0; i < repeats; i++) {
        const double begin = now();
#pragma omp target update from(data[0 : bytes])
        times[i] = now() - begin;
    }
    report("map_from", "bytes", bytes, repeats);
#pragma omp target exit data map(delete : data[0 : bytes])
    /* The same bytes copied by the host alone. */
    char* copy = aligned_alloc(64, (size_t)bytes);
    memset(copy, 2, (size_t)bytes);
    for (int i = 0; i < repeats; i++) {
        const double begin = now();
        memcpy(copy, data, (size_t)bytes);
        __asm__ volatile("" ::"r"(copy) : "memory");
        times[i] = now() - begin;
    }
    report("memcpy", "bytes", bytes, repeats);
    free(copy);
    free(data);
}

static void side_by_side(int regions, int repeats) {
    for (int i = -1; i < repeats; i++) {
        const double begin = now();
        for (int k = 0; k < regions; k++) {
#pragma omp target nowait
            {
                struct timespec start, end;
                clock_gettime(CLOCK_MONOTONIC, &start);
                do
                    clock_gettime(CLOCK_MONOTONIC, &end);
                while ((end.tv_sec - start.tv_sec) * 1000000L + (end.tv_nsec - start.tv_nsec) / 1000 <
                       region_us);
            }
        }
#pragma omp taskwait
        if (i >= 0) times[i] = now() - begin;
    }
    report("nowait_1ms", "regions", regions, repeats);
}

static void chain(int regions, int repeats) {
    int link = 0;
    for (int i = -1; i < repeats; i++) {
        const double begin = now();
        for (int k = 0; k < regions; k++) {
#pragma omp target nowait depend(inout : link)
            {}
        }
#pragma omp taskwait
        if (i >= 0) times[i] = now() - begin;
    }
    report("chain", "regions", regions, repeats);
}

int main(int count, char** arguments) {
    const int repeats = count > 1 ? atoi(arguments[1]) : 1000;
    if (repeats < 10 || repeats > most_repeats) {
        fprintf(stderr, "bench-target: %s repeats; 10 to %d are accepted\n", arguments[1], most_repeats);
        return 2;
    }
    printf("{\"devices\": %d, \"rows\": [", omp_get_num_devices());
    empty_regions(repeats);
    for (long bytes = 4096; bytes <= 1 << 26; bytes *= 8)
        transfers(bytes, bytes > 1 << 20 ? repeats / 100 + 5 : repeats / 10);
    for (int regions = 1; regions <= 16; regions *= 2)
        side_by_side(regions, repeats / 100 + 5);
    for (int regions = 1; regions <= 16; regions *= 4)
        chain(regions, repeats / 10);
    printf("]}\n");
    return 0;
}
