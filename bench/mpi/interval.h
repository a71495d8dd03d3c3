// One timed interval after another, each begun by all ranks together. Collective; one thread.
//
// If each node has its own clock, a rank's interval begins when it leaves a barrier. That is misleading if
// the ranks of several emulated nodes share one core. A rank that leaves the barrier late, because another
// one computes, then also starts its clock late.
//
// With a shared clock (all ranks on one machine), every interval begins at one agreed instant for all ranks.
// The ranks do not meet again before it ends. A rank may therefore compute before its neighbour on the same
// core has posted; the lab's short turns bound that to 0.2 ms.
#pragma once

#include <cstdint>
#include <optional>

#include "meeting.h"

namespace mpi_bench {

class Interval {
  public:
    explicit Interval(bool shared_clock);

    void start();
    // Seconds since the start, as this rank measures them.
    double elapsed() const;

  private:
    bool shared_clock_;
    std::optional<Meeting> meeting_;
    double start_ = 0;
};

}  // namespace mpi_bench
