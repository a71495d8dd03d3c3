/* Starts an exchange, computes, and waits for the exchange: the program of docs/tutorial.md.
 * Run: mpirun -n 2 ./overlap [bytes for each rank] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { steps = 20 };

static double compute(double* cells, int count) {
    double sum = 0;
    for (int round = 0; round < 40; ++round)
        for (int i = 1; i < count - 1; ++i)
            sum += cells[i] = 0.5 * cells[i] + 0.25 * (cells[i - 1] + cells[i + 1]);
    return sum;
}

int main(int argc, char** argv) {
    int rank, size;
    double in_mpi = 0, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int bytes = argc > 1 ? atoi(argv[1]) : 1 << 21;
    enum { cells = 100000 };
    char* const out = calloc(size, bytes);
    char* const in = calloc(size, bytes);
    double* const field = calloc(cells, sizeof *field);
    field[cells / 2] = 1;

    const double begin = MPI_Wtime();
    for (int step = 0; step < steps; ++step) {
        MPI_Request exchange;
        double since = MPI_Wtime();
        MPI_Ialltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD, &exchange);
        in_mpi += MPI_Wtime() - since;
        sum += compute(field, cells);
        since = MPI_Wtime();
        MPI_Wait(&exchange, MPI_STATUS_IGNORE);
        in_mpi += MPI_Wtime() - since;
    }
    const double total = MPI_Wtime() - begin;
    if (rank == 0)
        printf("{\"total_s\": %.4f, \"in_mpi_s\": %.4f, \"sum\": %.6f}\n", total / steps, in_mpi / steps,
               sum);
    free(field);
    free(in);
    free(out);
    MPI_Finalize();
    return 0;
}
