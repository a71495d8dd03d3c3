// Chooses the next of a window's two ways. Pure: all ranks of a window feed it the same numbers, so they make
// the same choice.
//
// The host's MPI is the faster way, but it moves data only while the target is inside MPI. The device does
// not need the target. The choice therefore depends on the share of time that ranks spend outside MPI. A
// window starts on the host's MPI, and moves to the device on evidence that its ranks compute.
#pragma once

#include <cstdint>

namespace offpath::ways {

enum class Way : std::uint8_t { host, device };

// The time since the last choice, in nanoseconds; each value is the largest of any rank.
struct Evidence {
    std::uint64_t observed_ns = 0;
    std::uint64_t outside_ns = 0;  // MPI
};

class WayChoice {
  public:
    // Smaller values are no evidence.
    static constexpr std::uint64_t least_outside_ns = 2'000'000;
    static constexpr std::uint64_t least_observed_ns = 5'000'000;
    static constexpr std::uint64_t busy_share = 5;   // a fifth of the time or more outside MPI
    static constexpr std::uint64_t idle_share = 20;  // less than a twentieth
    static constexpr int idle_before_host = 2;       // choices in a row

    explicit WayChoice(Way first = Way::host) : way_(first) {}

    Way way() const { return way_; }
    Way next(const Evidence& evidence) {
        if (is_busy(evidence)) {
            idle_ = 0;
            way_ = Way::device;
        } else if (is_idle(evidence) && ++idle_ >= idle_before_host) {
            way_ = Way::host;
        } else if (is_enough(evidence) && !is_idle(evidence)) {
            idle_ = 0;
        }
        return way_;
    }
    // Whether the choice has used up the evidence, so that observation starts again.
    static bool is_enough(const Evidence& evidence) {
        return evidence.observed_ns >= least_observed_ns || is_busy(evidence);
    }

  private:
    static bool is_busy(const Evidence& evidence) {
        return evidence.outside_ns >= least_outside_ns &&
               evidence.outside_ns >= evidence.observed_ns / busy_share;
    }
    static bool is_idle(const Evidence& evidence) {
        return evidence.observed_ns >= least_observed_ns &&
               evidence.outside_ns < evidence.observed_ns / idle_share;
    }

    Way way_;
    int idle_ = 0;
};

// Selects the meetings at which the ranks choose, where choosing has a cost: the 1st, 2nd, 4th and so on,
// then every 32nd. It starts again when the way changes.
class WayPace {
  public:
    bool due() {
        if (++calls_ < every_) return false;
        calls_ = 0;
        if (every_ < slowest) every_ *= 2;
        return true;
    }
    void restart() { calls_ = 0, every_ = 1; }

  private:
    static constexpr int slowest = 32;
    int calls_ = 0;
    int every_ = 1;
};

}  // namespace offpath::ways
