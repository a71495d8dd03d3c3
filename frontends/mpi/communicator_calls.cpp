// MPI_Comm_free and MPI_Comm_disconnect. The calls that make communicators are generated: see
// calls/calls.txt.
#include <mpi.h>
#include <offpath/types.h>

#include "communicators.h"
#include "operations.h"
#include "p2p/state.h"
#include "runtime.h"
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
    keep_for_votes(find_team(*comm));
    return keep_for_messages(comm) ? MPI_SUCCESS : PMPI_Comm_free(comm);
}

OFFPATH_API int MPI_Comm_disconnect(MPI_Comm* comm) {
    if (!may_be_ours(comm)) return PMPI_Comm_disconnect(comm);
    Team& team = find_team(*comm);
    finish_operations_of(team);
    p2p::finish_of(team);
    settle_votes(team);
    return keep_for_messages(comm) ? MPI_SUCCESS : PMPI_Comm_disconnect(comm);
}

}  // extern "C"
