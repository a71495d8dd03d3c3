// MPI_Comm_disconnect. The calls that make communicators are generated: see calls/calls.txt.
#include <mpi.h>
#include <offpath/types.h>

#include "communicators.h"
#include "operations.h"
#include "runtime.h"

extern "C" OFFPATH_API int MPI_Comm_disconnect(MPI_Comm* comm) {
    using namespace offpath::mpi;
    if (active() && comm != nullptr && *comm != MPI_COMM_NULL) finish_operations_of(find_team(*comm));
    return PMPI_Comm_disconnect(comm);
}
