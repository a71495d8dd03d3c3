/* A program for profilers: messages in a ring and collectives, whose results it checks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ints = 20000, rounds = 3 };

int main(int argc, char** argv) {
    static int mine[ints], other[ints];
    int rank, size, wrong = 0, all_wrong;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int* const all = malloc(sizeof mine * (size_t)size);
    const int left = (rank + size - 1) % size, right = (rank + 1) % size;
    for (int round = 0; round < rounds; ++round) {
        MPI_Request request;
        for (int i = 0; i < ints; ++i)
            mine[i] = round * 1000 + rank;
        MPI_Isend(mine, ints, MPI_INT, right, round, MPI_COMM_WORLD, &request);
        MPI_Recv(other, ints, MPI_INT, left, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Iallgather(mine, ints, MPI_INT, all, ints, MPI_INT, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < ints; ++i)
            wrong += other[i] != round * 1000 + left;
        for (int i = 0; i < ints * size; ++i)
            wrong += all[i] != round * 1000 + i / ints;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    free(all);
    MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("%d wrong\n", all_wrong);
    MPI_Finalize();
    return all_wrong != 0;
}
