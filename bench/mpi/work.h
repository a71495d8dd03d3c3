// How much of bench/common's computation these ranks do in a given time.
#pragma once

#include <cstdint>

#include "common/compute.h"
#include "interval.h"

namespace mpi_bench {

using bench::compute;

// Collective. The units that take the slowest rank `seconds` while all ranks compute at once.
std::uint64_t calibrate_units(double seconds, Interval& interval);

// Collective. The time that `units` take this rank while all ranks compute at once.
double time_compute(std::uint64_t units, Interval& interval);

}  // namespace mpi_bench
