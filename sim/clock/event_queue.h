// EventQueue: the virtual clock of a simulation. Events happen in the order of their times; events of one
// time happen in the order in which they were added. So equal inputs give equal runs.
//
// Time is in picoseconds: a byte on a link of 12.5 GB/s takes 80. Ownership: the queue borrows what an event
// calls, which must live until the event has happened. Threads: one. Fast path: adding an event allocates
// only when the heap grows.
#pragma once

#include "base/clock.h"

#include <cstdint>
#include <vector>

namespace offpath::sim {

// Picoseconds since the start of the simulation.
using Time = std::uint64_t;
constexpr Time ns = 1000, us = 1000 * ns, ms = 1000 * us, second = 1000 * ms;
constexpr Time never = UINT64_MAX;

// Rounds up, so that nothing takes no time at all.
Time from_seconds(double seconds);
inline double seconds_of(Time time) {
    return static_cast<double>(time) * 1e-12;
}
// How long `bytes` take at `bytes_per_second`, which is greater than 0.
Time transfer_time(std::uint64_t bytes, double bytes_per_second);

class EventQueue final : public Clock {
  public:
    using Action = void (*)(void* object, std::uint64_t argument);

    Time now() const { return now_; }
    std::uint64_t now_ns() const override { return now_ / ns; }

    // Calls `action(object, argument)` at `time`, or now if that has passed.
    void at(Time time, Action action, void* object, std::uint64_t argument = 0);
    void after(Time delay, Action action, void* object, std::uint64_t argument = 0) {
        at(now_ + delay, action, object, argument);
    }

    // Lets the next event happen. False: there is none.
    bool step();
    std::uint64_t events() const { return done_; }
    bool empty() const { return heap_.empty(); }

  private:
    struct Event {
        Time time;
        std::uint64_t order;
        Action action;
        void* object;
        std::uint64_t argument;
        bool before(const Event& other) const {
            return time != other.time ? time < other.time : order < other.order;
        }
    };
    void sift_down(std::size_t at, const Event& event);

    Time now_ = 0;
    std::uint64_t added_ = 0, done_ = 0;
    std::vector<Event> heap_;  // each event has four children, which makes the heap half as deep
};

}  // namespace offpath::sim
