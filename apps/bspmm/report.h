// What rank 0 says of a run: one JSON line and a summary for people.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "bspmm/exchange.h"
#include "bspmm/kernel.h"
#include "bspmm/problem.h"

namespace bspmm {

// A rank's phases as numbers, all ranks alike, and back.
std::vector<double> flatten(const Phases& phases);
Phases unflatten(const double* values, int ranks);
std::size_t flat_size(int ranks);

// Totals are those of the slowest rank, phases the mean over ranks: what a rank spends, on average, in each.
// Medians over the iterations; what was moved and who did how many units are of the last one.
struct Summary {
    Phases phases;
    std::vector<double> units_of;            // of each rank
    std::vector<std::vector<double>> moved;  // bytes, from rank, to rank
};
// `iterations[i][rank]`.
Summary summarise(const std::vector<std::vector<Phases>>& iterations);

}  // namespace bspmm
