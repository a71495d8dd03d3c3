// How one number differs between ranks.
#pragma once

#include <mpi.h>

#include <array>

namespace minimd {

struct Spread {
    double mean = 0.0, most = 0.0, least = 0.0;
    std::array<int, 10> histogram{};  // number of ranks in ten equal intervals from least to most

    double sum(int ranks) const { return mean * ranks; }
};

// Returns the spread of `value` on every rank. Collective.
Spread spread_over_ranks(double value, MPI_Comm comm);

}  // namespace minimd
