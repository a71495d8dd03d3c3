// Link model: how long the schedules of a team take if every rank has one full-duplex link to a switch that
// never blocks. Time is in slots; in a slot, a rank's link carries one chunk out and one chunk in. A sender
// serves its messages in turn and skips those whose receiver is busy. An op starts one slot after its
// dependencies are done, which models the cost of a hop. Copies and reductions take no time. Pure.
#pragma once

#include "schedule/schedule.h"

#include <cstdint>
#include <span>

namespace offpath::testing {

// How a sender chooses among its messages whose receivers are free in a slot. Real senders are between the
// two.
enum class Service { oldest_first, in_turn };

// Slots until all ops are done; 0: they never are. For schedules of send, recv, copy and reduce.
std::uint64_t slots_until_done(std::span<const schedule::Schedule> schedules, std::uint64_t chunk_bytes,
                               Service service);

}  // namespace offpath::testing
