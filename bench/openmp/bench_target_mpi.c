/* Latency and bandwidth of MPI messages between two ranks, host to host, device to device from inside target
 * regions, and between the host of rank 0 and the device of rank 1. Rank 0 prints one JSON object: rows of
 * test, bytes, and the median and the least time of one message in seconds.
 *
 *     bench-target-mpi [REPEATS]
 *
 * Latency is half a round trip. Bandwidth is measured by windows of non-blocking sends of one direction, each
 * window answered by an empty message; the row's time is that of a message in a window. */
#include <mpi.h>
#include <offpath_mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { warm_ups = 3, window = 8, most_repeats = 10000 };

#pragma omp begin declare target
/* One end of round trips; their times at rank 0. */
static void round_trips(int rank, MPI_Comm comm, char* data, int bytes, int repeats, double* times) {
    for (int i = -warm_ups; i < repeats; i++) {
        const double begin = MPI_Wtime();
        if (rank == 0) MPI_Send(data, bytes, MPI_BYTE, 1, 1, comm);
        MPI_Recv(data, bytes, MPI_BYTE, 1 - rank, 1, comm, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(data, bytes, MPI_BYTE, 0, 1, comm);
        if (i >= 0) times[i] = (MPI_Wtime() - begin) / 2;
    }
}

/* One end of windows from rank 0 to rank 1; the time of each message at rank 0. */
static void windows(int rank, MPI_Comm comm, char* data, int bytes, int repeats, double* times) {
    MPI_Request requests[window];
    for (int i = -warm_ups; i < repeats; i++) {
        const double begin = MPI_Wtime();
        for (int k = 0; k < window; k++) {
            if (rank == 0)
                MPI_Isend(data, bytes, MPI_BYTE, 1, 2, comm, &requests[k]);
            else
                MPI_Irecv(data + (size_t)k * (size_t)bytes, bytes, MPI_BYTE, 0, 2, comm, &requests[k]);
        }
        MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
        if (rank == 0)
            MPI_Recv(data, 0, MPI_BYTE, 1, 3, comm, MPI_STATUS_IGNORE);
        else
            MPI_Send(data, 0, MPI_BYTE, 0, 3, comm);
        if (i >= 0) times[i] = (MPI_Wtime() - begin) / window;
    }
}

static void measure(int rank, MPI_Comm comm, int bytes, int repeats, double* latency, double* rate) {
    char* const data = calloc(window, (size_t)bytes);
    round_trips(rank, comm, data, bytes, repeats, latency);
    windows(rank, comm, data, bytes, repeats, rate);
    free(data);
}
#pragma omp end declare target

static int rank, rows = 0;

static int compare(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static void report(const char* test, const char* ends, int bytes, double* times, int repeats) {
    if (rank != 0) return;
    qsort(times, (size_t)repeats, sizeof *times, compare);
    printf("%s{\"test\": \"mpi_%s_%s\", \"bytes\": %d, \"seconds\": %.9f, \"best_seconds\": %.9f}",
           rows++ ? ", " : "", test, ends, bytes, times[repeats / 2], times[0]);
}

int main(int count, char** arguments) {
    int size;
    MPI_Comm devices;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int repeats = count > 1 ? atoi(arguments[1]) : 1000;
    if (repeats < 10 || repeats > most_repeats || size != 2) {
        if (rank == 0)
            fprintf(stderr, "bench-target-mpi: 2 ranks and 10 to %d repeats are accepted\n", most_repeats);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &devices);
    offpath_comm_set_end(devices, OFFPATH_END_OTHER);
    double* const latency = calloc((size_t)repeats, sizeof *latency);
    double* const rate = calloc((size_t)repeats, sizeof *rate);
    if (rank == 0) printf("{\"devices\": %d, \"rows\": [", omp_get_num_devices());

    for (int bytes = 8; bytes <= 1 << 22; bytes *= 8) {
        const int few = bytes > 1 << 16 ? repeats / 100 + 5 : repeats / 2;
        const int here = rank;
        measure(here, MPI_COMM_WORLD, bytes, few, latency, rate);
        report("latency", "host_host", bytes, latency, few);
        report("bandwidth", "host_host", bytes, rate, few);
#pragma omp target map(from : latency[0 : few], rate[0 : few])
        measure(here, MPI_COMM_WORLD, bytes, few, latency, rate);
        report("latency", "device_device", bytes, latency, few);
        report("bandwidth", "device_device", bytes, rate, few);
        if (here == 0) {
            measure(here, devices, bytes, few, latency, rate);
        } else {
#pragma omp target map(from : latency[0 : few], rate[0 : few])
            {
                offpath_comm_set_end(MPI_COMM_WORLD, OFFPATH_END_OTHER);
                measure(here, MPI_COMM_WORLD, bytes, few, latency, rate);
                offpath_comm_set_end(MPI_COMM_WORLD, OFFPATH_END_ALIKE);
            }
        }
        report("latency", "host_device", bytes, latency, few);
        report("bandwidth", "host_device", bytes, rate, few);
    }
    if (rank == 0) printf("]}\n");
    free(latency);
    free(rate);
    MPI_Comm_free(&devices);
    MPI_Finalize();
    return 0;
}
