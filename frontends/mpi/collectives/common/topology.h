// The neighbours of a communicator's process topology, in the order in which neighbourhood collectives number
// them.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "communicators/communicators.h"

namespace offpath::mpi {

// At the edge of a grid the neighbour is MPI_PROC_NULL.
struct Neighbours {
    std::vector<int> sources, destinations;
    bool grid = false;
};

// Null without a topology. Local; asks the host's MPI.
Owned<Neighbours> read_neighbours(MPI_Comm comm);

// The k-th block from rank a to rank b is the k-th that b receives from a. On a periodic grid with one or two
// ranks in a dimension, both neighbours are the same rank. MPI libraries then differ, even between their
// blocking and non-blocking calls, in whether the block for the left neighbour arrives as the one from the
// right. This returns what the host's MPI does in this call, so that the device does the same. If true, a
// dimension's two blocks go in reversed order. It is tested once, on a grid of this process alone. Operations
// other than the three of the ineighbor_alltoall family send one block to all neighbours: false.
bool host_crosses(Op op, Form form);

}  // namespace offpath::mpi
