// Resting: what an idle proxy does, from the last work on. First it spins, for the configured time; where the
// core turns out to be shared (the kernel takes it away from the spinning thread), the time is halved, down
// to nothing, and grows back slowly while nobody takes the core. Then it looks and yields the core in turn
// until `courteous_times` the configured time has passed: whoever starts something meanwhile need not wake
// it, which takes longer than starting where idle cores are halted. Others who want the core get it. Those
// that are done within `brief_ns`, as other proxies are, do no harm; when somebody keeps it for longer the
// proxy sleeps, as the kernel is quicker to wake who sleeps than to come back to who has yielded, and it does
// so at once the next times it is idle: shy_times at first, each time that this happens again twice as often.
// Threads: the proxy's.
#pragma once

#include <cstdint>

namespace offpath::proxy {

class Resting {
  public:
    enum class Next : std::uint8_t { spin, yield, sleep };
    static constexpr std::uint64_t courteous_times = 20;
    // Of a yield, with the round that follows it.
    static constexpr std::uint64_t brief_ns = 100'000;
    static constexpr unsigned shy_times = 64, most_shy_times = 4096;

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
    unsigned shy_ = 0, next_shy_ = shy_times;
    long switches_ = 0;  // involuntary ones of this thread that were counted
};

}  // namespace offpath::proxy
