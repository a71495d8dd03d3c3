// One timed interval after another, each begun by all ranks together. Collective; one thread.
//
// With a clock of its own per node, a rank's interval begins when it leaves a barrier. That is blind where
// the ranks of several emulated nodes take turns on one core: a rank that leaves the barrier late, because
// another computes, also starts its clock late. With a shared clock (all ranks on one machine) every interval
// begins at an instant agreed upon, for all ranks alike, and no rank computes before all have posted, as they
// would have on nodes of their own: the scheduler may let a rank that computes run for ten milliseconds
// before its neighbour gets to post.
#pragma once

#include <cstdint>
#include <optional>

#include "meeting.h"

namespace mpi_bench {

class Interval {
  public:
    explicit Interval(bool shared_clock);

    void start();
    // Seconds since the start, as this rank sees them.
    double elapsed() const;
    // To be called between posting and computing; does nothing without a shared clock.
    void posted();

  private:
    bool shared_clock_;
    std::optional<Meeting> meeting_;
    double start_ = 0;
};

}  // namespace mpi_bench
