/* One-sided communication between hosts and devices, both ways at once: on a window that is made with the key
 * REMOTE_DEST_HETERO, hosts put into devices and get from them, while regions do the same with hosts. */
#include <mpi.h>
#include <offpath_mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { count = 20000 };

#pragma omp begin declare target
/* A window of `count` numbers, from `number` on, and one counter. `partner` is the target of puts and gets.
 * Returns errors. */
static int use_window(int number, int partner, int put_here, int start_there, MPI_Comm comm) {
    int rank, size, wrong = 0;
    long one = 1, before = -1;
    MPI_Info info;
    MPI_Win win;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    struct memory {
        long counter;
        int put[count], mine[count];
    }* const memory = malloc(sizeof *memory);
    int* const got = malloc(2 * count * sizeof *got);
    int* const source = got + count;
    memory->counter = 0;
    for (int i = 0; i < count; ++i) {
        memory->put[i] = got[i] = -1;
        memory->mine[i] = number + i;
        source[i] = number + 2 * i;
    }
    offpath_info_of_end(OFFPATH_END_OTHER, &info);
    MPI_Win_create(memory, sizeof *memory, sizeof(int), info, comm, &win);
    MPI_Info_free(&info);
    MPI_Win_fence(0, win);
    MPI_Put(source, count, MPI_INT, partner, 2, count, MPI_INT, win);
    MPI_Get(got, count, MPI_INT, partner, 2 + count, count, MPI_INT, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < count; ++i)
        wrong += memory->put[i] != put_here + 2 * i || got[i] != start_there + i;

    /* All hosts and all devices count at the device of rank 0. */
    offpath_win_set_end(win, omp_is_initial_device() ? OFFPATH_END_OTHER : OFFPATH_END_ALIKE);
    MPI_Win_lock_all(0, win);
    MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, win);
    MPI_Win_flush(0, win);
    wrong += before < 0 || before >= 2 * size;
    MPI_Win_unlock_all(win);
    MPI_Win_fence(0, win);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Get(&before, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
    MPI_Win_unlock(0, win);
    wrong += before != 2 * size;
    MPI_Win_free(&win);
    free(memory);
    free(got);
    return wrong;
}
#pragma omp end declare target

int main(int argc, char** argv) {
    int rank, size, by_device = 0, by_host = 0, all = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int left = (rank + size - 1) % size, right = (rank + 1) % size;

    /* Hosts use numbers from 3310 on, devices from 6310 on. Each puts to the right and gets from there. */
#pragma omp target nowait map(tofrom : by_device)
    by_device = use_window(6310 + rank, right, 3310 + left, 3310 + right, MPI_COMM_WORLD);
    by_host = use_window(3310 + rank, right, 6310 + left, 6310 + right, MPI_COMM_WORLD);
#pragma omp taskwait
    const int wrong = by_device + by_host;
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("hosts and devices put to and got from each other: %d errors\n", all);
    MPI_Finalize();
    return 0;
}
