// Neighbours of a communicator's process topology, in the order in which neighbourhood collectives number
// them.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "../selection.h"

namespace offpath::mpi {

// MPI_PROC_NULL stands where a grid ends.
struct Neighbours {
    std::vector<int> sources, destinations;
    bool grid = false;
};

// Null without a topology. Local; asks the host's MPI.
std::unique_ptr<Neighbours> read_neighbours(MPI_Comm comm);

// The k-th block from rank a to rank b is the k-th that b has from a. On a periodic grid with one or two
// ranks in a dimension both neighbours are the same rank, and MPI libraries differ, even between their
// blocking and non-blocking calls, in whether what goes to the left arrives from the right. This tells what
// the host's MPI does in this call, so that the device does the same: if true, a dimension's two blocks go in
// reversed order. Asked once, on a grid of this process alone. `op` is one of the ineighbor_alltoall family.
bool host_crosses(Op op, Form form);

}  // namespace offpath::mpi
