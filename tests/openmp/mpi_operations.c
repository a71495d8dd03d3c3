/* Collectives and operations on windows of target regions that the examples leave out, with values that every
 * rank can check. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { most = 8 };

#pragma omp begin declare target
static int reduce_scatters(int rank, int size) {
    long mine[most * (most + 1) / 2], got[most] = {0}, expected;
    int counts[most], wrong = 0, at = 0, total = 0;
    MPI_Request request;
    for (int i = 0; i < size; ++i)
        counts[i] = i; /* rank 0 gets nothing */
    for (int i = 0; i < size; ++i)
        total += counts[i];
    for (int i = 0; i < rank; ++i)
        at += counts[i];
    for (int i = 0; i < total; ++i)
        mine[i] = 1000 * i + rank;
    MPI_Reduce_scatter(mine, got, counts, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < counts[rank]; ++i) {
        expected = 1000L * (at + i) * size + size * (size - 1) / 2;
        wrong += got[i] != expected;
    }
    MPI_Ireduce_scatter(MPI_IN_PLACE, mine, counts, MPI_LONG, MPI_MAX, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < counts[rank]; ++i)
        wrong += mine[i] != 1000L * (at + i) + size - 1;
    return wrong;
}

/* Even ranks get two doubles of each rank, odd ones three ints. */
static int alltoallws(int rank, int size) {
    char out[most * 32], in[most * 32];
    int counts[most], places[most], from[most], wrong = 0;
    MPI_Datatype types[most], mine[most];
    MPI_Request request;
    for (int i = 0; i < size; ++i) {
        const double doubles[2] = {rank + 0.25, i + 0.5};
        const int ints[3] = {rank, i, rank * 100 + i};
        places[i] = 32 * i;
        types[i] = i % 2 == 0 ? MPI_DOUBLE : MPI_INT;
        counts[i] = i % 2 == 0 ? 2 : 3;
        mine[i] = rank % 2 == 0 ? MPI_DOUBLE : MPI_INT;
        from[i] = rank % 2 == 0 ? 2 : 3;
        memcpy(out + places[i], i % 2 == 0 ? (const void*)doubles : ints, i % 2 == 0 ? 16 : 12);
    }
    for (int again = 0; again < 2; ++again) {
        memset(in, 0, sizeof in);
        if (again == 0) {
            MPI_Alltoallw(out, counts, places, types, in, from, places, mine, MPI_COMM_WORLD);
        } else {
            MPI_Ialltoallw(out, counts, places, types, in, from, places, mine, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        for (int i = 0; i < size; ++i) {
            const double doubles[2] = {i + 0.25, rank + 0.5};
            const int ints[3] = {i, rank, i * 100 + rank};
            wrong += memcmp(in + places[i], rank % 2 == 0 ? (const void*)doubles : ints,
                            rank % 2 == 0 ? 16 : 12) != 0;
        }
    }
    return wrong;
}

static int windows(int rank, int size) {
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    long memory[4 + most] = {0}, put[2] = {rank, rank + 100}, got[2] = {-1, -1}, one = 1, old[2] = {-1, -1};
    long zero = 0, mark = rank + 1, found = -1;
    int wrong = 0;
    MPI_Request requests[2];
    MPI_Win win;
    MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(0, win);
    MPI_Rput(put, 2, MPI_LONG, right, 0, 2, MPI_LONG, win, &requests[0]);
    MPI_Raccumulate(&one, 1, MPI_LONG, 0, 2, 1, MPI_LONG, MPI_SUM, win, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Rput(put, 2, MPI_LONG, MPI_PROC_NULL, 0, 2, MPI_LONG, win, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    wrong += requests[0] != MPI_REQUEST_NULL;
    MPI_Win_flush_all(win);
    MPI_Barrier(MPI_COMM_WORLD);

    MPI_Rget(got, 2, MPI_LONG, right, 0, 2, MPI_LONG, win, &requests[0]);
    MPI_Rget_accumulate(0, 0, MPI_LONG, &found, 1, MPI_LONG, 0, 2, 1, MPI_LONG, MPI_NO_OP, win, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    wrong += got[0] != rank || got[1] != rank + 100 || found != size;
    MPI_Barrier(MPI_COMM_WORLD);

    /* Every rank swaps its left neighbour's place in the memory of rank 0, and nobody else's. */
    MPI_Compare_and_swap(&mark, &zero, &found, MPI_LONG, 0, 4 + left, win);
    MPI_Win_flush(0, win);
    wrong += found != 0;
    MPI_Compare_and_swap(&one, &zero, &found, MPI_LONG, 0, 4 + left, win);
    MPI_Win_flush(0, win);
    wrong += found != mark;

    /* The right rank's two numbers are replaced by their maximum with these. */
    const long large[2] = {0, 1000};
    MPI_Get_accumulate(large, 2, MPI_LONG, old, 2, MPI_LONG, right, 0, 2, MPI_LONG, MPI_MAX, win);
    MPI_Win_unlock_all(win);
    wrong += old[0] != rank || old[1] != rank + 100;
    MPI_Barrier(MPI_COMM_WORLD);
    wrong += memory[0] != left || memory[1] != 1000;
    for (int i = 0; rank == 0 && i < size; ++i)
        wrong += memory[4 + i] != (i + 1) % size + 1;
    MPI_Win_free(&win);
    return wrong;
}
#pragma omp end declare target

int main(int argc, char** argv) {
    int rank, size, wrong[3] = {0}, all[3] = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
#pragma omp target map(tofrom : wrong)
    {
        wrong[0] = reduce_scatters(rank, size);
        wrong[1] = alltoallws(rank, size);
        wrong[2] = windows(rank, size);
    }
    MPI_Reduce(wrong, all, 3, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        if (all[0] + all[1] + all[2] != 0)
            fprintf(stderr, "reduce_scatter %d, alltoallw %d, windows %d\n", all[0], all[1], all[2]);
        printf("%d wrong results\n", all[0] + all[1] + all[2]);
    }
    MPI_Finalize();
    return 0;
}
