// Which of its two ways a window takes next. Pure: the ranks of a window feed it the same numbers, so they
// come to the same choice.
//
// The host's MPI moves data only while the target is inside MPI, and is faster there. The device needs no
// target. So the share of their time that ranks spend outside MPI decides. A window begins with the host's
// MPI, and moves to the device on evidence that its ranks compute.
#pragma once

#include <cstdint>

namespace offpath::mpi {

enum class Way : std::uint8_t { host, device };

// Of the ranks since the last choice, each the largest of any rank, in nanoseconds.
struct Evidence {
    std::uint64_t observed_ns = 0;
    std::uint64_t outside_ns = 0;  // MPI
};

class WayChoice {
  public:
    // Less than this says nothing.
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
    // Whether the choice has used the evidence up, and observation begins anew.
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

// At which of many meetings that cost something the ranks choose: the 1st, 2nd, 4th and so on, then every
// 32nd. It begins again when the way changes.
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

}  // namespace offpath::mpi
