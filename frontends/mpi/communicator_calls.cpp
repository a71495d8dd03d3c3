// The calls that make intra-communicators. Each runs on the host's MPI; then the members agree on a team,
// before the user sees the communicator. One line a call.
#include <mpi.h>
#include <offpath/types.h>

#include "communicators.h"
#include "operations.h"
#include "runtime.h"

#define MAKES_COMMUNICATOR(call, parameters, arguments)                       \
    extern "C" OFFPATH_API int MPI_##call parameters {                        \
        const int result = PMPI_##call arguments;                             \
        if (result == MPI_SUCCESS) offpath::mpi::communicator_created(*made); \
        return result;                                                        \
    }

MAKES_COMMUNICATOR(Comm_dup, (MPI_Comm comm, MPI_Comm* made), (comm, made))
MAKES_COMMUNICATOR(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm* made), (comm, info, made))
MAKES_COMMUNICATOR(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* made), (comm, color, key, made))
MAKES_COMMUNICATOR(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made),
                   (comm, type, key, info, made))
MAKES_COMMUNICATOR(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm* made), (comm, group, made))
MAKES_COMMUNICATOR(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made),
                   (comm, group, tag, made))
MAKES_COMMUNICATOR(Cart_create,
                   (MPI_Comm comm, int ndims, const int dims[], const int periods[], int reorder,
                    MPI_Comm* made),
                   (comm, ndims, dims, periods, reorder, made))
MAKES_COMMUNICATOR(Cart_sub, (MPI_Comm comm, const int remain[], MPI_Comm* made), (comm, remain, made))
MAKES_COMMUNICATOR(Graph_create,
                   (MPI_Comm comm, int nodes, const int index[], const int edges[], int reorder,
                    MPI_Comm* made),
                   (comm, nodes, index, edges, reorder, made))
MAKES_COMMUNICATOR(Dist_graph_create,
                   (MPI_Comm comm, int n, const int sources[], const int degrees[], const int destinations[],
                    const int weights[], MPI_Info info, int reorder, MPI_Comm* made),
                   (comm, n, sources, degrees, destinations, weights, info, reorder, made))
MAKES_COMMUNICATOR(Dist_graph_create_adjacent,
                   (MPI_Comm comm, int indegree, const int sources[], const int source_weights[],
                    int outdegree, const int destinations[], const int destination_weights[], MPI_Info info,
                    int reorder, MPI_Comm* made),
                   (comm, indegree, sources, source_weights, outdegree, destinations, destination_weights,
                    info, reorder, made))
MAKES_COMMUNICATOR(Intercomm_merge, (MPI_Comm comm, int high, MPI_Comm* made), (comm, high, made))

extern "C" OFFPATH_API int MPI_Comm_disconnect(MPI_Comm* comm) {
    using namespace offpath::mpi;
    if (active() && comm != nullptr && *comm != MPI_COMM_NULL) finish_operations_of(find_team(*comm));
    return PMPI_Comm_disconnect(comm);
}
