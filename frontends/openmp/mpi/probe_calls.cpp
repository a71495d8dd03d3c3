// Probes. The proxy that serves the device looks for the message.
#include "openmp/mpi/communicators.h"
#include "openmp/mpi/ends.h"
#include "openmp/mpi/errors.h"
#include "openmp/mpi/requests.h"

#include <offpath/primitives.h>

namespace offpath::region_mpi {
namespace {

// Whether there is such a message; `waits`: there will be one.
bool probe(const Communicator& communicator, int source, int tag, bool waits, MPI_Status* status) {
    if (source == MPI_PROC_NULL) {
        fill(status, {.source = MPI_PROC_NULL});
        return true;
    }
    const Sources from = sources_of(communicator, source);
    Request request;
    request.receives = true;
    request.mixed = from.mixed;
    check(offpath_probe(from.team, from.member, from.mask, tag_to_match(tag), waits ? 1 : 0, &request.handle),
          "probe");
    const offpath_status_t result = offpath_request_wait(request.handle);
    wait(request);
    if (result == OFFPATH_ERR_CANCELED && !waits) return false;
    check(result, "probe");
    fill(status, request.outcome);
    return true;
}

}  // namespace
}  // namespace offpath::region_mpi

using namespace offpath::region_mpi;

OFFPATH_EXPORT int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
    return in_call("MPI_Probe", comm,
                   [&](Communicator& communicator) { probe(communicator, source, tag, true, status); });
}

OFFPATH_EXPORT int MPI_Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
    return in_call("MPI_Iprobe", comm, [&](Communicator& communicator) {
        *flag = probe(communicator, source, tag, false, status) ? 1 : 0;
    });
}
