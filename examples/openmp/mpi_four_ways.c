/* Messages in all four directions between the ranks' hosts and devices: each rank sends a number and an array
 * to the rank on its right. The key REMOTE_DEST_HETERO, or offpath_comm_set_end, says that the other end of a
 * communicator's messages is a device for a host, and a host for a region. */
#include <mpi.h>
#include <offpath_mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { count = 50000 };

#pragma omp begin declare target
/* Sends `number` and an array that begins with it, and receives the same of the left rank. Returns errors. */
static int swap(int number, int expected, int to, int from, int tag, MPI_Comm send, MPI_Comm receive) {
    int got = -1, wrong = 0;
    int* const mine = malloc(2 * count * sizeof *mine);
    int* const theirs = mine + count;
    MPI_Request request;
    MPI_Status status;
    for (int i = 0; i < count; ++i)
        mine[i] = number + i;
    if (receive != MPI_COMM_NULL) MPI_Irecv(theirs, count, MPI_INT, from, tag + 1, receive, &request);
    if (send != MPI_COMM_NULL) {
        MPI_Send(&number, 1, MPI_INT, to, tag, send);
        MPI_Send(mine, count, MPI_INT, to, tag + 1, send);
    }
    if (receive != MPI_COMM_NULL) {
        MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, tag, receive, &status);
        wrong += got != expected || status.MPI_SOURCE != from;
        MPI_Wait(&request, &status);
        MPI_Get_count(&status, MPI_INT, &got);
        wrong += got != count || status.MPI_SOURCE != from;
        for (int i = 0; i < count; ++i)
            wrong += theirs[i] != expected + i;
    }
    free(mine);
    return wrong;
}
#pragma omp end declare target

static void tell(int rank, const char* direction, int wrong) {
    int all = 0;
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%s: %d errors\n", direction, all);
}

int main(int argc, char** argv) {
    int rank, size, wrong = 0;
    MPI_Comm devices;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int left = (rank + size - 1) % size, right = (rank + 1) % size;
    /* The other end of this communicator's messages is a device; that of MPI_COMM_WORLD is a host. */
    MPI_Comm_dup(MPI_COMM_WORLD, &devices);
    offpath_comm_set_end(devices, OFFPATH_END_OTHER);

    wrong = swap(3310 + rank, 3310 + left, right, left, 1, MPI_COMM_WORLD, MPI_COMM_WORLD);
    tell(rank, "host to host", wrong);

    wrong = 0;
#pragma omp target map(tofrom : wrong)
    wrong = swap(3311 + rank, 3311 + left, right, left, 1, MPI_COMM_WORLD, MPI_COMM_WORLD);
    tell(rank, "device to device", wrong);

    wrong = 0;
#pragma omp target nowait
    {
        MPI_Info info;
        MPI_Info_create(&info);
        MPI_Info_set(info, "REMOTE_DEST_HETERO", "1");
        MPI_Comm_set_info(MPI_COMM_WORLD, info);
        swap(3312 + rank, 0, right, left, 1, MPI_COMM_WORLD, MPI_COMM_NULL);
        MPI_Info_set(info, "REMOTE_DEST_HETERO", "0");
        MPI_Comm_set_info(MPI_COMM_WORLD, info);
        MPI_Info_free(&info);
    }
    wrong = swap(0, 3312 + left, right, left, 1, MPI_COMM_NULL, devices);
#pragma omp taskwait
    tell(rank, "device to host", wrong);

    /* A receive in a region takes messages of both ends. */
    wrong = 0;
#pragma omp target nowait map(tofrom : wrong)
    wrong = swap(0, 3313 + left, right, left, 1, MPI_COMM_NULL, MPI_COMM_WORLD);
    swap(3313 + rank, 0, right, left, 1, devices, MPI_COMM_NULL);
#pragma omp taskwait
    tell(rank, "host to device", wrong);

    /* All at once: the host talks to hosts and to devices, and the device to both. */
    int by_host = 0, by_device = 0;
#pragma omp target nowait map(tofrom : by_device)
    {
        by_device += swap(3314 + rank, 3314 + left, right, left, 11, MPI_COMM_WORLD, MPI_COMM_WORLD);
        offpath_comm_set_end(MPI_COMM_WORLD, OFFPATH_END_OTHER);
        by_device += swap(3315 + rank, 3316 + left, right, left, 13, MPI_COMM_WORLD, MPI_COMM_WORLD);
        offpath_comm_set_end(MPI_COMM_WORLD, OFFPATH_END_ALIKE);
    }
    by_host += swap(3316 + rank, 3315 + left, right, left, 13, devices, devices);
    by_host += swap(3317 + rank, 3317 + left, right, left, 15, MPI_COMM_WORLD, MPI_COMM_WORLD);
#pragma omp taskwait
    tell(rank, "all at once", by_host + by_device);

    MPI_Comm_free(&devices);
    MPI_Finalize();
    return 0;
}
