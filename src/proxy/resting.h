// Resting: decides what an idle proxy does. At first it spins for the configured time. Where the core turns
// out to be shared (the kernel preempts the spinning thread), that time is halved, down to nothing. It grows
// back slowly while the core is not taken.
//
// If the proxy had all of that time, it then alternates between looking for work and yielding the core, until
// `courteous_times` the time has passed. Work that starts meanwhile needs no wake-up; where idle cores are
// halted, a wake-up takes longer than the start. If another thread wants the core, it gets the core and the
// proxy sleeps, because the kernel wakes a sleeper sooner than it returns to a thread that has yielded.
// Threads: the proxy's.
#pragma once

#include <cstdint>

namespace offpath::proxy {

class Resting {
  public:
    enum class Next : std::uint8_t { spin, yield, sleep };
    static constexpr std::uint64_t courteous_times = 20;
    // If a yield and the round after it last longer than this, another thread has run.
    static constexpr std::uint64_t brief_ns = 10'000;

    explicit Resting(std::uint64_t spin_ns) : spin_limit_ns_(spin_ns), spin_ns_(spin_ns) {}

    // Call it after a round that did something.
    void worked();
    // Call it after a round that did nothing.
    Next next(std::uint64_t now_ns);
    std::uint64_t spin_ns() const { return spin_ns_; }

  private:
    void adapt(long seen);
    long switches() const;

    const std::uint64_t spin_limit_ns_;
    std::uint64_t spin_ns_;
    std::uint64_t idle_since_ns_ = 0;
    std::uint64_t yielded_ns_ = 0;  // 0: not since the last work
    long switches_ = 0;             // involuntary switches of this thread counted so far
};

}  // namespace offpath::proxy
