// Measures wall-clock time and this thread's time on a core, lap by lap. One thread at a time.
#pragma once

#include <chrono>

#include "minimd/base/call_time.h"

namespace minimd {

// Seconds by the clock, and the part of them that this thread was on a core.
struct Elapsed {
    double wall = 0.0, core = 0.0;
    Elapsed& operator+=(const Elapsed& other) {
        wall += other.wall;
        core += other.core;
        return *this;
    }
};

class Stopwatch {
  public:
    // Adds the time since the last lap, or since the start, to `into`.
    void lap(Elapsed& into) {
        const double core = thread_cpu_seconds();
        into.core += core - last_core_;
        last_core_ = core;
        const Clock::time_point now = Clock::now();
        into.wall += std::chrono::duration<double>(now - last_).count();
        last_ = now;
    }
    void lap(double& into) {
        Elapsed elapsed;
        lap(elapsed);
        into += elapsed.wall;
    }
    double seconds() const { return std::chrono::duration<double>(Clock::now() - last_).count(); }

  private:
    using Clock = std::chrono::steady_clock;
    Clock::time_point last_ = Clock::now();
    double last_core_ = thread_cpu_seconds();
};

}  // namespace minimd
