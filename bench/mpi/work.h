// How much of bench/common's computation takes how long on these ranks.
#pragma once

#include <cstdint>

#include "common/compute.h"
#include "interval.h"

namespace mpi_bench {

using bench::compute;

// Collective: the units that take `seconds` on the slowest rank while all ranks compute at once.
std::uint64_t calibrate_units(double seconds, Interval& interval);

// Collective: how long `units` take this rank while all ranks compute at once.
double time_compute(std::uint64_t units, Interval& interval);

}  // namespace mpi_bench
