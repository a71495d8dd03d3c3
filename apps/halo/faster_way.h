// FasterWay: finds out during a run which of two ways to compute a step is faster here, and keeps to it.
//
// It takes a few steps each way, and all ranks agree on one. So they always use the same way, and results
// must not depend on it. It looks again when steps_kept steps have passed, and then after twice as many each
// time: the time that it spends on looking soon does not count. One thread uses it, between MPI_Init and
// MPI_Finalize.
#pragma once

#include <array>
#include <cstdint>

namespace halo {

enum class Way : int { device = 0, host = 1 };

class FasterWay {
  public:
    static constexpr int steps_each = 8;  // that are timed; the step before them is not, as it moves data
    static constexpr int steps_a_look = 2 * (1 + steps_each);
    static constexpr std::int64_t steps_kept = 200;  // until the second look

    // The way of the next step.
    Way way() const;
    // That step is done, and took so many seconds. Collective over MPI_COMM_WORLD in the last step of a look.
    void took(double seconds);
    // Keeps to one way and never looks.
    void force(Way way);
    bool forced() const { return forced_; }
    std::int64_t looks() const { return looks_; }  // that are complete

  private:
    bool looking() const { return !forced_ && step_ < steps_a_look; }
    void decide();

    bool forced_ = false;
    Way kept_ = Way::device;
    std::int64_t step_ = 0;  // since the present look began
    std::int64_t keeps_ = steps_kept, looks_ = 0;
    std::array<std::array<double, steps_each>, 2> seconds_{};
};

}  // namespace halo
