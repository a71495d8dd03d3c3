// Resting: when an idle proxy stops spinning and sleeps. It spins for the configured time after the last
// work; where the core turns out to be shared (the kernel takes it away from the spinning thread), the time
// is halved, down to nothing, and grows back slowly while nobody takes the core. Threads: the proxy's.
#pragma once

#include <cstdint>

namespace offpath::proxy {

class Resting {
  public:
    explicit Resting(std::uint64_t spin_ns) : spin_limit_ns_(spin_ns), spin_ns_(spin_ns) {}

    // After a round that did something.
    void worked() { idle_since_ns_ = 0; }
    // After a round that did nothing: whether it is time to sleep.
    bool should_sleep(std::uint64_t now_ns) {
        if (idle_since_ns_ == 0) idle_since_ns_ = now_ns;
        if (now_ns - idle_since_ns_ < spin_ns_) return false;
        adapt();
        idle_since_ns_ = 0;
        return true;
    }
    std::uint64_t spin_ns() const { return spin_ns_; }

  private:
    void adapt();

    const std::uint64_t spin_limit_ns_;
    std::uint64_t spin_ns_;
    std::uint64_t idle_since_ns_ = 0;
    long switches_ = 0;  // involuntary ones of this thread so far
};

}  // namespace offpath::proxy
