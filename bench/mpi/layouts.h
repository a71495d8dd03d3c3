// How each operation lays out its buffers: pure functions of the size, the rank and the number of ranks. The
// data follow from the layout: see operations.h.
#pragma once

#include <cstddef>
#include <vector>

#include "operations.h"

namespace mpi_bench {

int next_of(int rank, int ranks);
int previous_of(int rank, int ranks);
// Whom a rank exchanges with in the neighbourhood operations: the next and the previous rank of a ring, once
// each. The order of those that it sends to, and of those that it receives from.
std::vector<int> destinations_of(int rank, int ranks);
std::vector<int> sources_of(int rank, int ranks);

// `descending`: blocks in descending order of ranks, so that displacements matter.
Layout all_to_all(std::size_t bytes, int rank, int ranks, bool descending);
Layout all_gather(std::size_t bytes, int rank, int ranks, bool descending);
Layout broadcast(std::size_t bytes, int rank, int ranks);
// From rank 0's view: what it gathers, and what it scatters.
Layout gather(std::size_t bytes, int rank, int ranks, bool descending);
Layout scatter(std::size_t bytes, int rank, int ranks, bool descending);
// Sums of real numbers that are exact in every order.
Layout all_reduce(std::size_t bytes, int rank, int ranks);
Layout reduce(std::size_t bytes, int rank, int ranks);
Layout reduce_scatter(std::size_t bytes, int rank, int ranks);
Layout scan(std::size_t bytes, int rank, int ranks, bool inclusive);
Layout ring(std::size_t bytes, int rank, int ranks);
Layout neighbour_all_gather(std::size_t bytes, int rank, int ranks);
Layout neighbour_all_to_all(std::size_t bytes, int rank, int ranks);

}  // namespace mpi_bench
