// Schedules to test the wire form with: each kind of op, and random ones.
#pragma once

#include "schedule/schedule.h"

#include <cstdint>
#include <vector>

namespace offpath::testing {

// A small schedule in which every kind of op and of slot occurs.
schedule::Schedule sample_of_everything();

// A random valid schedule: ops of all kinds, dependencies forward and backward in the order of ops.
schedule::Schedule random_schedule(std::uint64_t seed);

}  // namespace offpath::testing
