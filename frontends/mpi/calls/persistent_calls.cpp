// MPI_Start, MPI_Startall, MPI_Request_free and MPI_Cancel. A request may be a persistent one of the front
// end (requests/persistent_requests.h), the request of a parcel (p2p/parcel.h), or the host's alone.
#include <mpi.h>
#include <offpath/types.h>

#include "p2p/lock.h"
#include "p2p/parcel_progress.h"
#include "requests/persistent_requests.h"

using namespace offpath::mpi;

namespace {

// A parcel's request is freed when the parcel is done.
int free_request(MPI_Request* request) {
    if (request == nullptr || !p2p::any_registered()) return PMPI_Request_free(request);
    const auto guard = p2p::lock();
    p2p::Parcel* parcel = p2p::find_parcel(*request);
    if (parcel == nullptr) return PMPI_Request_free(request);
    p2p::forsake(*parcel);
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}

}  // namespace

extern "C" {

OFFPATH_API int MPI_Start(MPI_Request* request) {
    if (persistent_requests.load(std::memory_order_relaxed) == 0 || request == nullptr)
        return PMPI_Start(request);
    return start_persistent(request);
}

OFFPATH_API int MPI_Startall(int count, MPI_Request requests[]) {
    if (persistent_requests.load(std::memory_order_relaxed) == 0 || requests == nullptr)
        return PMPI_Startall(count, requests);
    for (int i = 0; i < count; ++i) {
        const int result = start_persistent(&requests[i]);
        if (result != MPI_SUCCESS) return result;
    }
    return MPI_SUCCESS;
}

// An outstanding operation continues; its own request is freed instead.
OFFPATH_API int MPI_Request_free(MPI_Request* request) {
    if (persistent_requests.load(std::memory_order_relaxed) == 0 || request == nullptr)
        return free_request(request);
    MPI_Request started = MPI_REQUEST_NULL;
    if (!end_persistent(*request, &started)) return free_request(request);
    if (started != MPI_REQUEST_NULL) MPI_Request_free(&started);
    return PMPI_Request_free(request);
}

OFFPATH_API int MPI_Cancel(MPI_Request* request) {
    if (request == nullptr) return PMPI_Cancel(request);
    MPI_Request real = stand_in_of(*request);
    if (p2p::any_registered()) {
        const auto guard = p2p::lock();
        if (p2p::Parcel* parcel = p2p::find_parcel(real)) {
            p2p::cancel(*parcel);
            return MPI_SUCCESS;
        }
    }
    return PMPI_Cancel(&real);
}

}  // extern "C"
