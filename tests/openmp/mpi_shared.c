/* Memory of MPI_Alloc_mem is mapped by the device, and not copied. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { n = 100000 };

int main(int argc, char** argv) {
    int rank, wrong = 0, *x;
    setenv("OFFPATH_TARGET_REPORT", "1", 1);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Alloc_mem(n * sizeof(int), MPI_INFO_NULL, &x);
    for (int i = 0; i < n; i++)
        x[i] = i;
    for (int round = 0; round < 3; round++)
#pragma omp target map(tofrom : x[0 : n])
        for (int i = 0; i < n; i++)
            x[i] += rank;
    for (int i = 0; i < n; i++)
        wrong += x[i] != i + 3 * rank;
    MPI_Free_mem(x);
    int total = 0;
    MPI_Reduce(&wrong, &total, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("wrong results: %d\n", total);
    MPI_Finalize();
    return 0;
}
