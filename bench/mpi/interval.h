// One timed interval after another, each begun by all ranks together. Collective; one thread.
//
// If each node has its own clock, a rank's interval begins when it leaves a barrier. That is misleading if
// the ranks of several emulated nodes share one core. A rank that leaves the barrier late, because another
// one computes, then also starts its clock late.
//
// With a shared clock (all ranks on one machine), every interval begins at one agreed instant for all ranks.
// No rank computes before all have posted, as on separate nodes. Otherwise the scheduler might let a
// computing rank run for ten milliseconds before its neighbour can post.
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
    // Call it between posting and computing. Does nothing without a shared clock.
    void posted();

  private:
    bool shared_clock_;
    std::optional<Meeting> meeting_;
    double start_ = 0;
};

}  // namespace mpi_bench
