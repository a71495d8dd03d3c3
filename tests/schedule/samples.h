// Schedules for tests of the wire form: one with each kind of op, and random ones.
#pragma once

#include "schedule/schedule.h"

#include <cstdint>
#include <vector>

namespace offpath::testing {

// A small schedule with every kind of op and of slot.
schedule::Schedule sample_of_everything();

// A random valid schedule: ops of all kinds, with dependencies on earlier and on later ops.
schedule::Schedule random_schedule(std::uint64_t seed);

}  // namespace offpath::testing
