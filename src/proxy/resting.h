// Resting: what an idle proxy does, from the last work on. First it spins, for the configured time; where the
// core turns out to be shared (the kernel takes it away from the spinning thread), the time is halved, down
// to nothing, and grows back slowly while nobody takes the core. Where it has all of that time, it looks and
// yields the core in turn until `courteous_times` the time has passed: whoever starts something meanwhile
// need not wake it, which takes longer than starting where idle cores are halted. Somebody else who wants the
// core gets it, and the proxy then sleeps, as the kernel is quicker to wake who sleeps than to come back to
// who has yielded. Threads: the proxy's.
#pragma once

#include <cstdint>

namespace offpath::proxy {

class Resting {
  public:
    enum class Next : std::uint8_t { spin, yield, sleep };
    static constexpr std::uint64_t courteous_times = 20;
    // A yield that lasts longer, with the round that follows it, let somebody else run.
    static constexpr std::uint64_t brief_ns = 10'000;

    explicit Resting(std::uint64_t spin_ns) : spin_limit_ns_(spin_ns), spin_ns_(spin_ns) {}

    // After a round that did something.
    void worked();
    // After a round that did nothing.
    Next next(std::uint64_t now_ns);
    std::uint64_t spin_ns() const { return spin_ns_; }

  private:
    void adapt(long seen);
    long switches() const;

    const std::uint64_t spin_limit_ns_;
    std::uint64_t spin_ns_;
    std::uint64_t idle_since_ns_ = 0;
    std::uint64_t yielded_ns_ = 0;  // 0: not since the last work
    long switches_ = 0;             // involuntary ones of this thread that were counted
};

}  // namespace offpath::proxy
