// What operations have in common that move data in the same way: how they lay out their buffers, and of what.
// The rows of collectives.txt name these.
#pragma once

#include "layouts.h"

namespace mpi_bench::shapes {

template <Layout (*layout)(std::size_t, int, int)>
Layout always(std::size_t bytes, int rank, int ranks, bool /*descending*/) {
    return layout(bytes, rank, ranks);
}

template <bool inclusive>
Layout prefix(std::size_t bytes, int rank, int ranks, bool /*descending*/) {
    return mpi_bench::scan(bytes, rank, ranks, inclusive);
}

inline Layout empty(std::size_t, int, int, bool) {
    return {};
}

using enum Data;
constexpr Shape all_to_all{"from each rank to each rank", plain, mpi_bench::all_to_all};
constexpr Shape all_gather{"contributed by each rank", plain, mpi_bench::all_gather};
constexpr Shape broadcast{"in the message, from rank 0", plain, always<mpi_bench::broadcast>};
constexpr Shape nothing{"ignored", plain, empty};
constexpr Shape gather{"from each rank to rank 0", plain, mpi_bench::gather};
constexpr Shape scatter{"from rank 0 to each rank", plain, mpi_bench::scatter};
constexpr Shape all_reduce{"in each rank's vector of doubles, which are summed", summed,
                           always<mpi_bench::all_reduce>};
constexpr Shape reduce{"in each rank's vector of doubles, summed at rank 0", summed,
                       always<mpi_bench::reduce>};
constexpr Shape reduce_scatter{"of the sum of doubles for each rank", summed,
                               always<mpi_bench::reduce_scatter>};
constexpr Shape scan{"in each rank's vector of doubles, summed up to its own", summed, prefix<true>};
constexpr Shape exscan{"in each rank's vector of doubles, summed before its own", summed, prefix<false>};
constexpr Shape neighbour_all_gather{"from each rank to both neighbours in a ring", plain,
                                     always<mpi_bench::neighbour_all_gather>, true};
constexpr Shape neighbour_all_to_all{"from each rank to each neighbour in a ring", plain,
                                     always<mpi_bench::neighbour_all_to_all>, true};
constexpr Shape ring{"from each rank to the next (MPI_Isend and MPI_Irecv in a ring)", plain,
                     always<mpi_bench::ring>};

}  // namespace mpi_bench::shapes
