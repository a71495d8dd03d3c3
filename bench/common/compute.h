// A fixed amount of computation, for overlap measurements.
//
// One unit is a fixed number of dependent multiply-adds on an array that stays in the first-level cache. Its
// time depends on the core and on what shares the core, never on a clock or a sleep.
#pragma once

#include <cstdint>

namespace bench {

void compute(std::uint64_t units);

}  // namespace bench
