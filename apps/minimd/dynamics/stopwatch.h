// Wall-clock time, lap by lap.
#pragma once

#include <chrono>

namespace minimd {

class Stopwatch {
  public:
    // Adds the time since the last lap (or the start) to `into`.
    void lap(double& into) {
        const Clock::time_point now = Clock::now();
        into += std::chrono::duration<double>(now - last_).count();
        last_ = now;
    }
    double seconds() const { return std::chrono::duration<double>(Clock::now() - last_).count(); }

  private:
    using Clock = std::chrono::steady_clock;
    Clock::time_point last_ = Clock::now();
};

}  // namespace minimd
