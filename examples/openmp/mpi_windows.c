/* One-sided communication between devices, while the hosts use a window of their own: neither needs the
 * other's attention. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { count = 20000 };

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int left = (rank + size - 1) % size, right = (rank + 1) % size;
    int wrong = 0;

    /* The host's window. */
    int* const host = calloc(size, sizeof *host);
    MPI_Win window;
    MPI_Win_create(host, size * sizeof *host, sizeof *host, MPI_INFO_NULL, MPI_COMM_WORLD, &window);

    double* const memory = malloc(count * sizeof *memory);
    double* const source = malloc(count * sizeof *source);
#pragma omp target enter data map(alloc : memory[0 : count], source[0 : count])
#pragma omp target nowait map(tofrom : wrong)
    {
        MPI_Win mine, counter;
        long tickets = 0, ticket = 0, one = 1;
        double back = 0;
        for (int i = 0; i < count; ++i) {
            memory[i] = -1;
            source[i] = rank * 1e6 + i;
        }
        MPI_Win_create(memory, count * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &mine);
        MPI_Win_fence(0, mine);
        MPI_Put(source, count, MPI_DOUBLE, right, 0, count, MPI_DOUBLE, mine);
        MPI_Win_fence(0, mine);
        for (int i = 0; i < count; ++i)
            wrong += memory[i] != left * 1e6 + i;
        MPI_Get(&back, 1, MPI_DOUBLE, right, count - 1, 1, MPI_DOUBLE, mine);
        MPI_Win_fence(0, mine);
        wrong += back != source[count - 1];
        MPI_Win_free(&mine);

        MPI_Win_create(&tickets, sizeof tickets, sizeof tickets, MPI_INFO_NULL, MPI_COMM_WORLD, &counter);
        MPI_Win_lock_all(0, counter);
        MPI_Fetch_and_op(&one, &ticket, MPI_LONG, 0, 0, MPI_SUM, counter);
        MPI_Win_flush(0, counter);
        wrong += ticket < 0 || ticket >= 2 * size;
        MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, counter);
        MPI_Win_unlock_all(counter);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, counter);
        MPI_Get(&ticket, 1, MPI_LONG, 0, 0, 1, MPI_LONG, counter);
        MPI_Win_unlock(0, counter);
        wrong += ticket != 2 * size;
        MPI_Win_free(&counter);
    }
    MPI_Win_fence(0, window);
    for (int to = 0; to < size; ++to)
        MPI_Put(&rank, 1, MPI_INT, to, rank, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    int errors = 0, all = 0;
    for (int i = 0; i < size; ++i)
        errors += host[i] != i;
#pragma omp taskwait
#pragma omp target exit data map(delete : memory[0 : count], source[0 : count])
    errors += wrong;
    MPI_Reduce(&errors, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("devices and hosts used windows side by side: %d errors\n", all);
    MPI_Win_free(&window);
    free(host);
    free(memory);
    free(source);
    MPI_Finalize();
    return 0;
}
