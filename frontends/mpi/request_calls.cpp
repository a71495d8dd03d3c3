// MPI's request calls. While nothing offloaded is under way they are the host's. Otherwise a call that tests
// polls first, and a call that waits drives the offloaded requests among its own until they are done and
// leaves the rest, with statuses, errors and all, to the host's call.
#include <mpi.h>
#include <offpath/types.h>

#include "operations.h"
#include "persistent.h"
#include "tuning/samples.h"

using namespace offpath::mpi;

namespace {

bool any_is_ours(int count, const MPI_Request* requests) {
    if (requests == nullptr) return false;
    for (int i = 0; i < count; ++i) {
        if (is_under_way(requests[i])) return true;
    }
    return false;
}

// Repeats `test`, which sets `finished`, until it did or failed.
template <typename Test>
int test_until(Test test) {
    for (Backoff backoff;; pause_for_any(backoff)) {
        poll();
        bool finished = false;
        const int result = test(finished);
        if (finished || result != MPI_SUCCESS) return result;
    }
}

}  // namespace

extern "C" {

OFFPATH_API int MPI_Wait(MPI_Request* request, MPI_Status* status) {
    const FollowedWait followed(1, request);
    StandIns real(1, request);
    if (any_under_way() && request != nullptr) wait_until_done(*real.data());
    return PMPI_Wait(real.data(), status);
}

OFFPATH_API int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
    const FollowedWait followed(count, requests);
    StandIns real(count, requests);
    for (int i = 0; i < count && requests != nullptr && any_under_way(); ++i)
        wait_until_done(real.data()[i]);
    return PMPI_Waitall(count, real.data(), statuses);
}

OFFPATH_API int MPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
    const FollowedWait followed(count, requests);
    StandIns real(count, requests);
    if (!any_under_way() || !any_is_ours(count, real.data()))
        return PMPI_Waitany(count, real.data(), index, status);
    return test_until([&](bool& finished) {
        int flag = 0;
        const int result = PMPI_Testany(count, real.data(), index, &flag, status);
        finished = flag != 0;
        return result;
    });
}

OFFPATH_API int MPI_Waitsome(int count, MPI_Request requests[], int* done, int indices[],
                             MPI_Status statuses[]) {
    const FollowedWait followed(count, requests);
    StandIns real(count, requests);
    if (!any_under_way() || !any_is_ours(count, real.data())) {
        return PMPI_Waitsome(count, real.data(), done, indices, statuses);
    }
    return test_until([&](bool& finished) {
        const int result = PMPI_Testsome(count, real.data(), done, indices, statuses);
        finished = *done != 0;
        return result;
    });
}

OFFPATH_API int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
    const FollowedWait followed(1, request);
    poll();
    StandIns real(1, request);
    return PMPI_Test(real.data(), flag, status);
}

OFFPATH_API int MPI_Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
    const FollowedWait followed(count, requests);
    poll();
    StandIns real(count, requests);
    return PMPI_Testall(count, real.data(), flag, statuses);
}

OFFPATH_API int MPI_Testany(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
    const FollowedWait followed(count, requests);
    poll();
    StandIns real(count, requests);
    return PMPI_Testany(count, real.data(), index, flag, status);
}

OFFPATH_API int MPI_Testsome(int count, MPI_Request requests[], int* done, int indices[],
                             MPI_Status statuses[]) {
    const FollowedWait followed(count, requests);
    poll();
    StandIns real(count, requests);
    return PMPI_Testsome(count, real.data(), done, indices, statuses);
}

OFFPATH_API int MPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
    poll();
    return PMPI_Request_get_status(stand_in_of(request), flag, status);
}

}  // extern "C"
