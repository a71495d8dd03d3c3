// MPI's request calls for arrays of mixed requests: some may be an offloaded collective's or a point-to-point
// parcel's, the others are the host's alone. Each function has the arguments and the result of the MPI call.
//
// A call that tests polls first. One that waits drives collectives until they are done and leaves the rest,
// with statuses, errors and all, to the host's call. Parcels are waited for, tested and ended by their own
// rules (p2p/). Threads: any.
#pragma once

#include <mpi.h>

namespace offpath::mpi::mixed {

int wait(MPI_Request* request, MPI_Status* status);
int wait_all(int count, MPI_Request requests[], MPI_Status statuses[]);
int wait_any(int count, MPI_Request requests[], int* index, MPI_Status* status);
int wait_some(int count, MPI_Request requests[], int* done, int indices[], MPI_Status statuses[]);
int test(MPI_Request* request, int* flag, MPI_Status* status);
int test_all(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]);
int test_any(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status);
int test_some(int count, MPI_Request requests[], int* done, int indices[], MPI_Status statuses[]);
int get_status(MPI_Request request, int* flag, MPI_Status* status);

}  // namespace offpath::mpi::mixed
