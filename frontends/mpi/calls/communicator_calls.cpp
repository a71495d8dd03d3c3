// Calls on communicators that are not generated from calls/calls.txt: those that end one, and those that
// may say that its messages are with devices.
#include <mpi.h>
#include <offpath/types.h>

#include "communicators/communicators.h"
#include "devices/key.h"
#include "p2p/outstanding.h"
#include "requests/held_calls.h"
#include "requests/offloaded_requests.h"
#include "runtime/runtime.h"
#include "tuning/agreement.h"

using namespace offpath::mpi;

namespace {

bool may_be_ours(const MPI_Comm* comm) {
    return active() && comm != nullptr && *comm != MPI_COMM_NULL;
}

}  // namespace

extern "C" {

OFFPATH_API int MPI_Comm_free(MPI_Comm* comm) {
    if (!may_be_ours(comm)) return PMPI_Comm_free(comm);
    drop_agreement(find_team(*comm));
    return keep_for_messages(comm) ? MPI_SUCCESS : PMPI_Comm_free(comm);
}

OFFPATH_API int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* made) {
    before_collective(comm);
    int error = PMPI_Comm_dup_with_info(comm, info, made);
    if (error == MPI_SUCCESS) error = communicator_created(comm, made);
    if (error != MPI_SUCCESS) return error;
    return devices::take_key(*made, info);
}

OFFPATH_API int MPI_Comm_set_info(MPI_Comm comm, MPI_Info info) {
    const int error = PMPI_Comm_set_info(comm, info);
    return error == MPI_SUCCESS ? devices::take_key(comm, info) : error;
}

OFFPATH_API int MPI_Comm_disconnect(MPI_Comm* comm) {
    if (!may_be_ours(comm)) return PMPI_Comm_disconnect(comm);
    Team& team = find_team(*comm);
    drop_agreement(team);
    finish_requests_of(team);
    p2p::finish_of(team);
    return keep_for_messages(comm) ? MPI_SUCCESS : PMPI_Comm_disconnect(comm);
}

}  // extern "C"
