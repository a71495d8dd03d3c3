// One timed interval after another, each begun by all ranks together. Collective; one thread.
//
// With a clock of its own per node, a rank's interval begins when it leaves a barrier. That is blind where
// the ranks of several emulated nodes take turns on one core: a rank that leaves the barrier late, because
// another computes, also starts its clock late. With a shared clock (all ranks on one machine) every interval
// begins at an instant agreed upon, for all ranks alike, and a rank that has posted lets those on its core
// post before it computes, as they would on nodes of their own.
#pragma once

#include <cstdint>

namespace mpi_bench {

class Interval {
  public:
    explicit Interval(bool shared_clock);

    void start();
    // Seconds since the start, as this rank sees them.
    double elapsed() const;
    // To be called between posting and computing; does nothing without a shared clock.
    void posted() const;

  private:
    bool shared_clock_;
    int ranks_ = 1;
    double start_ = 0;
};

}  // namespace mpi_bench
