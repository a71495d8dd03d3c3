// Resting: what an idle proxy does, from the last work on. First it spins, for the configured time; where the
// core turns out to be shared (the kernel takes it away from the spinning thread), the time is halved, down
// to nothing, and grows back slowly while nobody takes the core. Then it looks and yields the core in turn
// until `courteous_times` the configured time has passed: whoever starts something meanwhile need not wake
// it, which takes longer than starting where idle cores are halted. Others who want the core get it. Those
// that are done within `brief_ns`, as other proxies are, do no harm; when somebody keeps it for longer the
// proxy sleeps, as the kernel is quicker to wake who sleeps than to come back to who has yielded, and for
// shy_ns it does so at once when it is idle; for twice as long each time that this happens again.
// Threads: the proxy's.
#pragma once

#include <cstdint>

namespace offpath::proxy {

class Resting {
  public:
    enum class Next : std::uint8_t { spin, yield, sleep };
    static constexpr std::uint64_t courteous_times = 20;
    // Of a yield.
    static constexpr std::uint64_t brief_ns = 1'000'000;
    static constexpr std::uint64_t shy_ns = 100'000'000, most_shy_ns = 64 * shy_ns;

    explicit Resting(std::uint64_t spin_ns) : spin_limit_ns_(spin_ns), spin_ns_(spin_ns) {}

    // After a round that did something.
    void worked();
    // After a round that did nothing.
    Next next(std::uint64_t now_ns);
    // After the yield that next() asked for.
    void yielded(std::uint64_t now_ns);
    std::uint64_t spin_ns() const { return spin_ns_; }

  private:
    void adapt(long seen);
    long switches() const;

    const std::uint64_t spin_limit_ns_;
    std::uint64_t spin_ns_;
    std::uint64_t idle_since_ns_ = 0;
    std::uint64_t yielded_ns_ = 0;  // 0: not since the last work
    std::uint64_t shy_until_ns_ = 0, next_shy_ns_ = shy_ns;
    long switches_ = 0;  // involuntary ones of this thread that were counted
};

}  // namespace offpath::proxy
