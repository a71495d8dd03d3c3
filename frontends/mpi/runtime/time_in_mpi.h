// Presence: how much time this rank spends outside MPI. A large share means that peers' one-sided operations
// would have to wait for it, so that a device pays (host_or_device.h).
//
// It is counted while a window with two ways exists; other time is neither inside nor outside. Every call
// that can block and every one-sided call is timed. Sampling would not do: a rank that shares its core may be
// descheduled anywhere, and would then look like a rank that computes.
//
// Threads: one at a time. With MPI_THREAD_MULTIPLE nothing is counted.
#pragma once

#include <cstdint>

#include "base/ticks.h"
#include "outstanding_counts.h"

namespace offpath::mpi {

// Whether the program computed while a message was outstanding, given its time outside MPI. The device's cost
// at its ends is at most about 100 us, whatever the message's size. A few microseconds pass between any two
// calls.
inline bool has_computed(std::uint64_t outside_ns, std::uint64_t elapsed_ns) {
    return outside_ns > 100'000 || (outside_ns > 5'000 && outside_ns > elapsed_ns / 8);
}

}  // namespace offpath::mpi

namespace offpath::mpi::presence {

// Both values are cumulative, in nanoseconds; only the difference between two readings has a meaning.
struct Reading {
    std::uint64_t counted_ns = 0;
    std::uint64_t inside_ns = 0;
};
Reading read();

// The reading since the latest call of this function, or since the first window.
Reading seen_lately();

// Begin and end of a window with two ways.
void begin();
void end();

// The ticks since `first`. The counters of two cores may differ by a few ticks.
inline std::uint64_t ticks_since(std::uint64_t first) {
    const std::uint64_t now = ticks();
    return now > first ? now - first : 0;
}
// When the present call of MPI began, in ticks, while time is counted. Costs no look at the clock.
inline std::uint64_t call_began() {
    return outstanding.entered_ticks;
}
// How many ticks pass in this time, while time is counted.
std::uint64_t ticks_of(std::uint64_t nanoseconds);

// Lives during a call of MPI. May be nested.
class Inside {
  public:
    Inside() : counts_(outstanding.timed != 0) {
        if (counts_ && outstanding.calls_entered++ == 0) outstanding.entered_ticks = ticks();
    }
    ~Inside() {
        if (counts_ && --outstanding.calls_entered == 0)
            outstanding.inside_ticks += ticks_since(outstanding.entered_ticks);
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

  private:
    bool counts_;
};

}  // namespace offpath::mpi::presence
