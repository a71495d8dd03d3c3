/* Times target regions of the device that OpenMP finds: empty regions, transfers in both directions, regions
 * that run side by side, and a chain of regions that the host does not wait for one by one. Beside the
 * transfers stand what they are judged by: memcpy, and with ADDRESS, which is one of this host that the
 * device can reach, the same bytes over a plain TCP connection between this process and a region. Prints one
 * JSON object: rows of test, bytes or regions, and the medians of the times in seconds.
 *
 *     bench-target [REPEATS [ADDRESS]] */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

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

#pragma omp declare target
static int send_all(int socket, const char* data, long bytes) {
    while (bytes > 0) {
        const ssize_t sent = send(socket, data, (size_t)bytes, MSG_NOSIGNAL);
        if (sent <= 0) return -1;
        data += sent, bytes -= sent;
    }
    return 0;
}

static int receive_all(int socket, char* data, long bytes) {
    return recv(socket, data, (size_t)bytes, MSG_WAITALL) == bytes ? 0 : -1;
}

/* The device's end of a plain connection: takes the bytes and answers, then sends them whenever it is asked.
 */
static int answer_raw(struct sockaddr_in host, long bytes, int repeats) {
    const int one = 1, peer = socket(AF_INET, SOCK_STREAM, 0);
    char* const data = calloc(1, (size_t)bytes);
    char word = 1;
    int failed = connect(peer, (struct sockaddr*)&host, sizeof host);
    setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    for (int i = 0; i < repeats && !failed; i++)
        failed = receive_all(peer, data, bytes) || send_all(peer, &word, 1);
    for (int i = 0; i < repeats && !failed; i++)
        failed = receive_all(peer, &word, 1) || send_all(peer, data, bytes);
    free(data);
    close(peer);
    return failed;
}
#pragma omp end declare target

static void must(int right, const char* what) {
    if (right) return;
    fprintf(stderr, "bench-target: the raw link: %s failed\n", what);
    exit(1);
}

static void raw_link(const char* address, long bytes, int repeats) {
    const struct timeval patience = {.tv_sec = 20};
    const int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in host = {.sin_family = AF_INET};
    socklen_t length = sizeof host;
    must(inet_pton(AF_INET, address, &host.sin_addr) == 1, "the address");
    setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    must(bind(listener, (struct sockaddr*)&host, sizeof host) == 0 && listen(listener, 1) == 0, "listen");
    getsockname(listener, (struct sockaddr*)&host, &length);
    int failed = 1;
#pragma omp target nowait map(from : failed) firstprivate(host, bytes, repeats)
    failed = answer_raw(host, bytes, repeats);
    const int peer = accept(listener, 0, 0);
    must(peer >= 0, "accept");
    setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    char* const data = calloc(1, (size_t)bytes);
    char word = 1;
    for (int i = 0; i < repeats; i++) {
        const double begin = now();
        must(!send_all(peer, data, bytes) && !receive_all(peer, &word, 1), "a transfer to the device");
        times[i] = now() - begin;
    }
    report("raw_to", "bytes", bytes, repeats);
    for (int i = 0; i < repeats; i++) {
        const double begin = now();
        must(!send_all(peer, &word, 1) && !receive_all(peer, data, bytes), "a transfer from the device");
        times[i] = now() - begin;
    }
    report("raw_from", "bytes", bytes, repeats);
#pragma omp taskwait
    must(!failed, "the device's end");
    free(data);
    close(peer);
    close(listener);
}

#pragma omp declare target
/* Computes for `region_us` of its own CPU time. By the wall clock, regions that share a core would overlap.
 */
static void compute(void) {
    struct timespec start, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    while ((end.tv_sec - start.tv_sec) * 1000000L + (end.tv_nsec - start.tv_nsec) / 1000 < region_us);
}
#pragma omp end declare target

static void side_by_side(int regions, int repeats) {
    for (int i = -1; i < repeats; i++) {
        const double begin = now();
        for (int k = 0; k < regions; k++) {
#pragma omp target nowait
            compute();
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
    for (long bytes = 4096; bytes <= 1 << 26; bytes *= 8) {
        const int few = bytes > 1 << 20 ? repeats / 100 + 5 : repeats / 10;
        transfers(bytes, few);
        if (count > 2) raw_link(arguments[2], bytes, few);
    }
    for (int regions = 1; regions <= 16; regions *= 2)
        side_by_side(regions, repeats / 100 + 5);
    for (int regions = 1; regions <= 16; regions *= 4)
        chain(regions, repeats / 10);
    printf("]}\n");
    return 0;
}
