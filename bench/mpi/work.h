// A fixed amount of computation, for overlap measurements.
//
// One unit is a given number of dependent multiply-adds on an array that stays in the first-level cache; how
// long it takes depends on the core and on what shares it, never on a clock or a sleep.
#pragma once

#include <cstdint>

#include "interval.h"

namespace mpi_bench {

void compute(std::uint64_t units);

// Collective: the units that take `seconds` on the slowest rank while all ranks compute at once.
std::uint64_t calibrate_units(double seconds, Interval& interval);

// Collective: how long `units` take this rank while all ranks compute at once.
double time_compute(std::uint64_t units, Interval& interval);

}  // namespace mpi_bench
