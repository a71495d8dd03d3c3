// How operations lay out their buffers: pure functions of the size, the rank and the number of ranks. The
// layout determines the data (operations.h).
#pragma once

#include <cstddef>
#include <vector>

#include "operations.h"

namespace mpi_bench {

int next_of(int rank, int ranks);
int previous_of(int rank, int ranks);
// The neighbours of a rank in the neighbourhood operations: the next and the previous rank of a ring, once
// each. The order of the destinations, and that of the sources.
std::vector<int> destinations_of(int rank, int ranks);
std::vector<int> sources_of(int rank, int ranks);

// `descending`: blocks are in descending order of ranks, so that displacements matter.
Layout all_to_all(std::size_t bytes, int rank, int ranks, bool descending);
Layout all_gather(std::size_t bytes, int rank, int ranks, bool descending);
Layout broadcast(std::size_t bytes, int rank, int ranks);
// As rank 0 sees it: what it gathers, or scatters.
Layout gather(std::size_t bytes, int rank, int ranks, bool descending);
Layout scatter(std::size_t bytes, int rank, int ranks, bool descending);
// Sums of real numbers that are exact in any order.
Layout all_reduce(std::size_t bytes, int rank, int ranks);
Layout reduce(std::size_t bytes, int rank, int ranks);
Layout reduce_scatter(std::size_t bytes, int rank, int ranks);
Layout scan(std::size_t bytes, int rank, int ranks, bool inclusive);
Layout ring(std::size_t bytes, int rank, int ranks);
Layout neighbour_all_gather(std::size_t bytes, int rank, int ranks);
Layout neighbour_all_to_all(std::size_t bytes, int rank, int ranks);

}  // namespace mpi_bench
