// Measures the time that this thread spends on a core in calls that communicate. It excludes the work around
// the calls, such as packing, and the time in which the thread waits off its core. One thread at a time.
#pragma once

#include <time.h>

namespace minimd {

inline double thread_cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

class CallTime {
  public:
    template <typename Call>
    auto in(Call&& call) {
        struct Stop {
            CallTime& time;
            double from = thread_cpu_seconds();
            ~Stop() { time.seconds_ += thread_cpu_seconds() - from; }
        } stop{*this};
        return call();
    }
    double seconds() const { return seconds_; }

  private:
    double seconds_ = 0.0;
};

}  // namespace minimd
