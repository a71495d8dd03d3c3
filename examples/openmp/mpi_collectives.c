/* Collectives among devices: each device computes a row of a matrix, all of them transpose it with an
 * alltoall, and the norm is reduced, without a copy of the matrix in the hosts' memory. */
#include <mpi.h>
#include <stdio.h>

enum { block = 512 };

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int wrong = 0;
    double sum = 0, expected = 0;
#pragma omp target map(tofrom : wrong, sum, expected)
    {
        static double row[block * 64], column[block * 64];
        int numbers[64];
        for (int to = 0; to < size; ++to)
            for (int i = 0; i < block; ++i)
                row[to * block + i] = rank * 1e6 + to * 1e3 + i;
        MPI_Alltoall(row, block, MPI_DOUBLE, column, block, MPI_DOUBLE, MPI_COMM_WORLD);
        double mine = 0;
        for (int from = 0; from < size; ++from)
            for (int i = 0; i < block; ++i) {
                wrong += column[from * block + i] != from * 1e6 + rank * 1e3 + i;
                mine += column[from * block + i];
            }
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        for (int from = 0; from < size; ++from)
            for (int to = 0; to < size; ++to)
                for (int i = 0; i < block; ++i)
                    expected += from * 1e6 + to * 1e3 + i;

        MPI_Allgather(&rank, 1, MPI_INT, numbers, 1, MPI_INT, MPI_COMM_WORLD);
        for (int i = 0; i < size; ++i)
            wrong += numbers[i] != i;
        int root = rank == 0 ? 42 : 0;
        MPI_Bcast(&root, 1, MPI_INT, 0, MPI_COMM_WORLD);
        wrong += root != 42;
        MPI_Request request;
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    wrong += sum != expected;
    int all = 0;
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("the devices transposed a matrix and added it up: %d errors\n", all);
    MPI_Finalize();
    return 0;
}
