/* Several target regions of one rank call MPI at the same time, each on a communicator of its own, while the
 * host exchanges messages with devices and with hosts. Regions of the same number of all ranks belong
 * together. */
#include <mpi.h>
#include <offpath_mpi.h>
#include <stdio.h>

enum { regions = 4, rounds = 20, count = 3000 };

#pragma omp begin declare target
static MPI_Comm own[regions];

/* Messages around the ring, probes, a reduction and a split of one region. Returns errors. */
static int work(int region, int rank, int size) {
    const int left = (rank + size - 1) % size, right = (rank + 1) % size;
    int data[count], theirs[count], wrong = 0, got = 0, sum = 0, flag = 0;
    MPI_Comm half;
    MPI_Request requests[2];
    MPI_Status status;
    for (int round = 0; round < rounds; ++round) {
        const int number = region * 1000000 + round * 1000;
        for (int i = 0; i < count; ++i)
            data[i] = number + rank + i;
        MPI_Irecv(theirs, count, MPI_INT, MPI_ANY_SOURCE, round, own[region], &requests[0]);
        MPI_Isend(data, count, MPI_INT, right, round, own[region], &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < count; ++i)
            wrong += theirs[i] != number + left + i;
        MPI_Send(&number, 1, MPI_INT, right, rounds, own[region]);
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, own[region], &status);
        wrong += status.MPI_SOURCE != left || status.MPI_TAG != rounds;
        MPI_Recv(&got, 1, MPI_INT, left, rounds, own[region], MPI_STATUS_IGNORE);
        wrong += got != number;
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, own[region]);
        wrong += sum != size * (size - 1) / 2;
    }
    MPI_Comm_split(own[region], rank % 2, -rank, &half);
    int place, members;
    MPI_Comm_rank(half, &place);
    MPI_Comm_size(half, &members);
    wrong += members != (size + 1 - rank % 2) / 2 || place != members - 1 - rank / 2;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, half, &flag, &status);
    wrong += flag;
    MPI_Comm_free(&half);
    wrong += half != MPI_COMM_NULL;
    return wrong;
}
#pragma omp end declare target

int main(int argc, char** argv) {
    int rank, size, provided, wrong[regions] = {0}, by_host = 0, all = 0, got = 0;
    MPI_Comm devices;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int left = (rank + size - 1) % size, right = (rank + 1) % size;
    MPI_Comm_dup(MPI_COMM_WORLD, &devices);
    offpath_comm_set_end(devices, OFFPATH_END_OTHER);
    /* Communicators are valid in later regions. */
#pragma omp target
    for (int region = 0; region < regions; ++region)
        MPI_Comm_dup(MPI_COMM_WORLD, &own[region]);
    for (int region = 0; region < regions; ++region) {
#pragma omp target nowait map(tofrom : wrong[region]) firstprivate(region, rank, size)
        wrong[region] = work(region, rank, size);
    }
    /* One more region answers the host of the left rank. */
#pragma omp target nowait
    {
        int number = 0;
        for (int round = 0; round < rounds; ++round) {
            MPI_Recv(&number, 1, MPI_INT, left, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            ++number;
            offpath_comm_set_end(MPI_COMM_WORLD, OFFPATH_END_OTHER);
            MPI_Send(&number, 1, MPI_INT, left, 78, MPI_COMM_WORLD);
            offpath_comm_set_end(MPI_COMM_WORLD, OFFPATH_END_ALIKE);
        }
    }
    for (int round = 0; round < rounds; ++round) {
        const int number = rank * 100 + round;
        MPI_Sendrecv(&number, 1, MPI_INT, right, 77, &got, 1, MPI_INT, right, 78, devices, MPI_STATUS_IGNORE);
        by_host += got != number + 1;
        MPI_Sendrecv(&number, 1, MPI_INT, right, 77, &got, 1, MPI_INT, left, 77, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        by_host += got != left * 100 + round;
    }
#pragma omp taskwait
#pragma omp target
    for (int region = 0; region < regions; ++region)
        MPI_Comm_free(&own[region]);
    for (int region = 0; region < regions; ++region)
        by_host += wrong[region];
    MPI_Reduce(&by_host, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%d wrong results\n", all);
    MPI_Comm_free(&devices);
    MPI_Finalize();
    return 0;
}
