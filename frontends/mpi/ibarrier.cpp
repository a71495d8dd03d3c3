#include "buffers.h"
#include "counters.h"
#include "runtime.h"

using namespace offpath::mpi;

extern "C" OFFPATH_API int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
    if (!active() || !plausible(comm, nullptr, request)) return PMPI_Ibarrier(comm, request);
    Team* team = team_for(comm, Op::ibarrier, 0);
    if (team == nullptr) return PMPI_Ibarrier(comm, request);
    Operation& operation = acquire_operation(Op::ibarrier, *team);
    const offpath_status_t status =
        start_on_device([&] { return offpath_ibarrier(team->handle, &operation.device); });
    const int result = publish(operation, status, request);
    if (result == MPI_SUCCESS) count_offloaded(*team, Op::ibarrier, 0, 0);
    return result;
}
