// MPI's request calls. They are the host's as long as every request belongs to the host's MPI alone.
#include <mpi.h>
#include <offpath/types.h>

#include "mixed_requests.h"
#include "runtime/outstanding_counts.h"

using namespace offpath::mpi;

extern "C" {

OFFPATH_API int MPI_Wait(MPI_Request* request, MPI_Status* status) {
    return requests_are_the_hosts() ? PMPI_Wait(request, status) : mixed::wait(request, status);
}

OFFPATH_API int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
    return requests_are_the_hosts() ? PMPI_Waitall(count, requests, statuses)
                                    : mixed::wait_all(count, requests, statuses);
}

OFFPATH_API int MPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
    return requests_are_the_hosts() ? PMPI_Waitany(count, requests, index, status)
                                    : mixed::wait_any(count, requests, index, status);
}

OFFPATH_API int MPI_Waitsome(int count, MPI_Request requests[], int* done, int indices[],
                             MPI_Status statuses[]) {
    return requests_are_the_hosts() ? PMPI_Waitsome(count, requests, done, indices, statuses)
                                    : mixed::wait_some(count, requests, done, indices, statuses);
}

OFFPATH_API int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
    return requests_are_the_hosts() ? PMPI_Test(request, flag, status) : mixed::test(request, flag, status);
}

OFFPATH_API int MPI_Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
    return requests_are_the_hosts() ? PMPI_Testall(count, requests, flag, statuses)
                                    : mixed::test_all(count, requests, flag, statuses);
}

OFFPATH_API int MPI_Testany(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
    return requests_are_the_hosts() ? PMPI_Testany(count, requests, index, flag, status)
                                    : mixed::test_any(count, requests, index, flag, status);
}

OFFPATH_API int MPI_Testsome(int count, MPI_Request requests[], int* done, int indices[],
                             MPI_Status statuses[]) {
    return requests_are_the_hosts() ? PMPI_Testsome(count, requests, done, indices, statuses)
                                    : mixed::test_some(count, requests, done, indices, statuses);
}

OFFPATH_API int MPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
    return requests_are_the_hosts() ? PMPI_Request_get_status(request, flag, status)
                                    : mixed::get_status(request, flag, status);
}

}  // extern "C"
