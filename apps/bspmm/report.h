// What rank 0 prints about a run: one JSON line and a summary for people.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "bspmm/exchange.h"
#include "bspmm/kernel.h"
#include "bspmm/problem.h"

namespace bspmm {

// Converts a rank's phases into numbers, equally many on all ranks, and back.
std::vector<double> flatten(const Phases& phases);
Phases unflatten(const double* values, int ranks);
std::size_t flat_size(int ranks);

// Totals are those of the slowest rank. Phases are the mean over the ranks. Both are medians over the
// iterations. The bytes moved and the units of each rank are those of the last iteration.
struct Summary {
    Phases phases;
    std::vector<double> units_of;            // by rank
    std::vector<std::vector<double>> moved;  // bytes, from rank, to rank
};
// Summarises `iterations[i][rank]`.
Summary summarise(const std::vector<std::vector<Phases>>& iterations);

}  // namespace bspmm
