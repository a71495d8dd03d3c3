/* Starts an exchange, computes, and waits for the exchange: the program of docs/tutorial.md.
 * Run: mpirun -n 2 ./overlap [bytes for each rank] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
    const int bytes = argc > 1 ? atoi(argv[1]) : 2 << 20, steps = 20, work = 8000000;
    int rank, size;
    double value = 1, in_mpi = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *out = calloc(size, bytes), *in = calloc(size, bytes);
    const double begin = MPI_Wtime();
    for (int step = 0; step < steps; ++step) {
        MPI_Request exchange;
        const double start = MPI_Wtime();
        MPI_Ialltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD, &exchange);
        const double started = MPI_Wtime();
        for (int i = 0; i < work; ++i)
            value = 0.999 * value + 1;
        const double computed = MPI_Wtime();
        MPI_Wait(&exchange, MPI_STATUS_IGNORE);
        in_mpi += started - start + MPI_Wtime() - computed;
    }
    if (rank == 0)
        printf("{\"total_s\": %.4f, \"in_mpi_s\": %.4f, \"value\": %.0f}\n", (MPI_Wtime() - begin) / steps,
               in_mpi / steps, value);
    return MPI_Finalize();
}
