/* A profiler as users write them: it counts some calls of MPI and makes them by PMPI. It sends and receives
   in other ways than the program asked for, and says its counts in MPI_Finalize, with messages of its own. */
#include <mpi.h>
#include <stdio.h>

enum { inits, isends, recvs, waits, allgathers, barriers, kinds };
static long counts[kinds];

int MPI_Init(int* argc, char*** argv) {
    ++counts[inits];
    return PMPI_Init(argc, argv);
}

int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
    ++counts[isends];
    return PMPI_Isend(buffer, count, type, to, tag, comm, request);
}

int MPI_Recv(void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
             MPI_Status* status) {
    MPI_Request request;
    ++counts[recvs];
    PMPI_Irecv(buffer, count, type, from, tag, comm, &request);
    return PMPI_Wait(&request, status);
}

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
    ++counts[waits];
    return PMPI_Wait(request, status);
}

int MPI_Iallgather(const void* from, int from_count, MPI_Datatype from_type, void* to, int to_count,
                   MPI_Datatype to_type, MPI_Comm comm, MPI_Request* request) {
    ++counts[allgathers];
    return PMPI_Iallgather(from, from_count, from_type, to, to_count, to_type, comm, request);
}

int MPI_Barrier(MPI_Comm comm) {
    ++counts[barriers];
    return PMPI_Barrier(comm);
}

int MPI_Finalize(void) {
    long all[kinds];
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Reduce(counts, all, kinds, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("profiler: %ld inits, %ld isends, %ld recvs, %ld waits, %ld allgathers, %ld barriers\n",
               all[inits], all[isends], all[recvs], all[waits], all[allgathers], all[barriers]);
    fflush(stdout);
    return PMPI_Finalize();
}
