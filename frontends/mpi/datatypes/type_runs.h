// The pieces of memory that one element of a datatype covers, in the order of its type map. They follow from
// the type's constructors, so their number alone determines time and memory, however far apart they lie.
// Threads: any.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

namespace offpath::mpi {

struct Run {
    MPI_Aint offset;
    std::size_t bytes;
};

// Joins the piece to the last one if they touch.
void append(std::vector<Run>& runs, MPI_Aint offset, std::size_t bytes);

// False: the host's MPI does not tell how the type was made.
bool find_runs(MPI_Datatype type, std::vector<Run>& runs);

}  // namespace offpath::mpi
