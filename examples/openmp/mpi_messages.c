/* Messages between devices: in a target region, a rank's device sends to and receives from the devices of the
 * other ranks. A device has its rank's number. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { count = 100000 };

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int left = (rank + size - 1) % size, right = (rank + 1) % size;

    /* A token goes around all devices, and each adds its rank. */
    int token = 0;
#pragma omp target map(tofrom : token)
    {
        int me;
        MPI_Comm_rank(MPI_COMM_WORLD, &me);
        if (me > 0) MPI_Recv(&token, 1, MPI_INT, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        token += me;
        if (me < size - 1) MPI_Send(&token, 1, MPI_INT, right, 1, MPI_COMM_WORLD);
    }
    if (rank == size - 1) {
        const int fine = token == size * (size - 1) / 2;
        printf("a token went around all devices: %s\n", fine ? "right" : "wrong");
    }

    /* Both directions at once, while the host's own messages with the same tag stay apart. */
    double* const mine = malloc(count * sizeof *mine);
    double* const theirs = malloc(count * sizeof *theirs);
    int wrong = 0, received = 0, of_host = -1;
    for (int i = 0; i < count; ++i)
        mine[i] = rank * 1000.0 + i;
#pragma omp target enter data map(to : mine[0 : count]) map(alloc : theirs[0 : count])
#pragma omp target nowait map(tofrom : wrong, received)
    {
        MPI_Request requests[2];
        MPI_Status statuses[2];
        MPI_Irecv(theirs, count, MPI_DOUBLE, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(mine, count, MPI_DOUBLE, right, 2, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, statuses);
        MPI_Get_count(&statuses[0], MPI_DOUBLE, &received);
        wrong += statuses[0].MPI_SOURCE != left;
        for (int i = 0; i < count; ++i)
            wrong += theirs[i] != left * 1000.0 + i;
    }
    MPI_Sendrecv(&rank, 1, MPI_INT, right, 2, &of_host, 1, MPI_INT, left, 2, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
#pragma omp taskwait
#pragma omp target exit data map(delete : mine[0 : count], theirs[0 : count])
    int all = 0;
    wrong += received != count || of_host != left;
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("devices and hosts exchanged data side by side: %d errors\n", all);
    free(mine);
    free(theirs);
    MPI_Finalize();
    return 0;
}
