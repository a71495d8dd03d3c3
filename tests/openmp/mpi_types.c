/* Derived datatypes in messages of regions: what a device sends with one type, the next device or host
 * receives with another. Counts elements that are not what they should be. */
#include <mpi.h>
#include <offpath_mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { rows = 60, columns = 50 };

struct particle {
    char kind;
    double place[3];
    int number;
};

#pragma omp begin declare target
static int columns_as_rows(int rank, int left, int right) {
    static double mine[rows][columns], theirs[columns][rows];
    MPI_Datatype column, of_columns;
    MPI_Request request;
    MPI_Aint lower, extent;
    MPI_Status status;
    int wrong = 0, got, bytes;
    for (int i = 0; i < rows; ++i)
        for (int j = 0; j < columns; ++j)
            mine[i][j] = rank * 1e6 + i * columns + j;
    MPI_Type_vector(rows, 1, columns, MPI_DOUBLE, &column);
    MPI_Type_create_resized(column, 0, sizeof(double), &of_columns);
    MPI_Type_commit(&of_columns);
    MPI_Type_get_extent(of_columns, &lower, &extent);
    MPI_Type_size(of_columns, &bytes);
    wrong += lower != 0 || extent != sizeof(double) || bytes != rows * (int)sizeof(double);
    MPI_Irecv(theirs, rows * columns, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &request);
    MPI_Send(mine, columns, of_columns, right, 1, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, of_columns, &got);
    wrong += got != columns;
    for (int i = 0; i < rows; ++i)
        for (int j = 0; j < columns; ++j)
            wrong += theirs[j][i] != left * 1e6 + i * columns + j;
    MPI_Type_free(&column);
    MPI_Type_free(&of_columns);
    return wrong + (column != MPI_DATATYPE_NULL);
}

static MPI_Datatype particles(void) {
    const int lengths[] = {1, 3, 1};
    const MPI_Aint places[] = {offsetof(struct particle, kind), offsetof(struct particle, place),
                               offsetof(struct particle, number)};
    const MPI_Datatype types[] = {MPI_CHAR, MPI_DOUBLE, MPI_INT};
    MPI_Datatype type;
    MPI_Type_create_struct(3, lengths, places, types, &type);
    MPI_Type_commit(&type);
    return type;
}

static void fill(struct particle* all, int count, int rank) {
    memset(all, 0, count * sizeof *all);
    for (int i = 0; i < count; ++i) {
        all[i].kind = (char)i;
        for (int k = 0; k < 3; ++k)
            all[i].place[k] = rank + i * 0.5 + k;
        all[i].number = rank * 1000 + i;
    }
}

static int count_wrong(const struct particle* all, int count, int rank) {
    int wrong = 0;
    for (int i = 0; i < count; ++i) {
        wrong += all[i].kind != (char)i || all[i].number != rank * 1000 + i;
        for (int k = 0; k < 3; ++k)
            wrong += all[i].place[k] != rank + i * 0.5 + k;
    }
    return wrong;
}

/* Every second block of a list, into every third number. */
static int lists(int left, int right, int rank) {
    int mine[20], theirs[30], lengths[] = {2, 1, 3}, places[] = {10, 0, 4}, wrong = 0;
    const int order[] = {10, 11, 0, 4, 5, 6};
    const MPI_Aint bytes[] = {0, 3 * sizeof(int)};
    MPI_Datatype list, third, pair, twice;
    for (int i = 0; i < 20; ++i)
        mine[i] = rank * 100 + i;
    for (int i = 0; i < 30; ++i)
        theirs[i] = -1;
    MPI_Type_indexed(3, lengths, places, MPI_INT, &list);
    MPI_Type_create_hvector(3, 1, 3 * sizeof(int), MPI_INT, &third);
    MPI_Type_contiguous(2, third, &twice);
    MPI_Type_create_hindexed_block(2, 1, bytes, MPI_INT, &pair);
    MPI_Type_commit(&list);
    MPI_Type_commit(&twice);
    MPI_Type_commit(&pair);
    MPI_Sendrecv(mine, 1, list, right, 2, theirs, 1, twice, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 6; ++i)
        wrong += theirs[i < 3 ? 3 * i : 7 + 3 * (i - 3)] != left * 100 + order[i];
    MPI_Sendrecv_replace(mine, 1, pair, right, 3, left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    wrong += mine[0] != left * 100 || mine[1] != rank * 100 + 1 || mine[3] != left * 100 + 3;
    MPI_Type_free(&list);
    MPI_Type_free(&third);
    MPI_Type_free(&twice);
    MPI_Type_free(&pair);
    return wrong;
}
#pragma omp end declare target

int main(int argc, char** argv) {
    enum { many = 500 };
    static struct particle all[many];
    int rank, size, by_device = 0, wrong = 0, total = 0, probed = 0;
    MPI_Comm devices;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int left = (rank + size - 1) % size, right = (rank + 1) % size;
    MPI_Comm_dup(MPI_COMM_WORLD, &devices);
    offpath_comm_set_end(devices, OFFPATH_END_OTHER);

#pragma omp target map(tofrom : by_device)
    by_device += columns_as_rows(rank, left, right) + lists(left, right, rank);

    /* From host to device, where a probe tells how many there are, and back. */
#pragma omp target nowait map(tofrom : by_device)
    {
        static struct particle there[many];
        MPI_Datatype type = particles();
        MPI_Status found;
        MPI_Aint lower, extent;
        int count = 0, flag = 0;
        MPI_Probe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &found);
        MPI_Get_count(&found, type, &count);
        by_device += found.MPI_SOURCE != left || found.MPI_TAG != 5 || count != many;
        MPI_Type_get_extent(type, &lower, &extent);
        by_device += extent != sizeof(struct particle);
        MPI_Recv(there, many, type, found.MPI_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        by_device += count_wrong(there, many, left);
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, &found);
        by_device += flag;
        offpath_comm_set_end(MPI_COMM_WORLD, OFFPATH_END_OTHER);
        MPI_Send(there, 100, type, left, 6, MPI_COMM_WORLD);
        offpath_comm_set_end(MPI_COMM_WORLD, OFFPATH_END_ALIKE);
        MPI_Type_free(&type);
    }
    MPI_Datatype type = particles();
    fill(all, many, rank);
    MPI_Send(all, many, type, right, 5, devices);
    memset(all, 0, sizeof all);
    MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, devices, &status);
    MPI_Get_count(&status, type, &probed);
    wrong += status.MPI_SOURCE != right || status.MPI_TAG != 6 || probed != 100;
    MPI_Recv(all, many, type, right, 6, devices, &status);
    MPI_Get_count(&status, type, &probed);
    wrong += probed != 100 || count_wrong(all, 100, rank) != 0 || all[100].number != 0;
#pragma omp taskwait
    MPI_Type_free(&type);
    wrong += by_device;
    MPI_Reduce(&wrong, &total, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%d wrong results\n", total);
    MPI_Comm_free(&devices);
    MPI_Finalize();
    return 0;
}
