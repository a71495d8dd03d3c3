// ShortSpin: how long a thread that waits for memory to change may spin before it sleeps. A thread that has
// the core to itself spins to its limit. On a core that others want, it spins for a few microseconds, then
// lets them run, and is over. One object for each wait; used by one thread.
#pragma once

#include "base/clock.h"
#include "base/pause.h"

#include <sched.h>

#include <cstdint>

namespace offpath {

class ShortSpin {
  public:
    explicit ShortSpin(std::uint64_t limit_ns) : limit_ns_(limit_ns) {}

    // Called after each look in vain. False: the spin is over, and the thread should sleep.
    bool again() {
        if (over_) return false;
        pause_cpu();
        if (++looks_ % looks_a_step != 0) return true;
        const std::uint64_t now = now_ns();
        if (begun_ns_ == 0) begun_ns_ = now;
        const std::uint64_t spun = now - begun_ns_;
        if (spun > limit_ns_) {
            over_ = true;
        } else if (spun > alone_ns) {
            sched_yield();
            over_ = now_ns() - now > brief_ns;
            return true;  // what it waits for may have come while others ran
        }
        return !over_;
    }
    // Begins again: something has come.
    void restart() {
        begun_ns_ = 0;
        looks_ = 0;
        over_ = false;
    }

  private:
    static constexpr int looks_a_step = 16;
    static constexpr std::uint64_t alone_ns = 5'000;  // shorter than it takes to sleep and to be woken
    static constexpr std::uint64_t brief_ns = 5'000;  // a yield that takes longer has let others run
    const std::uint64_t limit_ns_;
    std::uint64_t begun_ns_ = 0;
    int looks_ = 0;
    bool over_ = false;
};

}  // namespace offpath
