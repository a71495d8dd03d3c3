// How one number differs between ranks.
#pragma once

#include <mpi.h>

#include <array>

namespace minimd {

struct Spread {
    double mean = 0.0, most = 0.0, least = 0.0;
    std::array<int, 10> histogram{};  // of ranks, from least to most

    double sum(int ranks) const { return mean * ranks; }
};

// On every rank; collective.
Spread spread_over_ranks(double value, MPI_Comm comm);

}  // namespace minimd
