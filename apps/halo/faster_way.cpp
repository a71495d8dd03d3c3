#include "halo/faster_way.h"

#include <mpi.h>

#include <algorithm>

namespace halo {

Way FasterWay::way() const {
    if (!looking()) return kept_;
    return step_ < steps_a_look / 2 ? Way::device : Way::host;
}

void FasterWay::took(double seconds) {
    if (forced_) return;
    if (looking()) {
        const auto of_way = static_cast<int>(step_ % (steps_a_look / 2));
        if (of_way > 0)
            seconds_[static_cast<std::size_t>(way())][static_cast<std::size_t>(of_way - 1)] = seconds;
    }
    ++step_;
    if (step_ == steps_a_look) decide();
    if (step_ == steps_a_look + keeps_) {
        step_ = 0;
        keeps_ *= 2;
    }
}

void FasterWay::force(Way way) {
    forced_ = true;
    kept_ = way;
}

// Medians, because a single step may be interrupted; of the slowest rank, because the others wait for it.
void FasterWay::decide() {
    std::array<double, 2> taken{};
    for (std::size_t i = 0; i < taken.size(); ++i) {
        auto& seconds = seconds_[i];
        std::nth_element(seconds.begin(), seconds.begin() + steps_each / 2, seconds.end());
        taken[i] = seconds[steps_each / 2];
    }
    MPI_Allreduce(MPI_IN_PLACE, taken.data(), static_cast<int>(taken.size()), MPI_DOUBLE, MPI_MAX,
                  MPI_COMM_WORLD);
    kept_ = taken[0] < taken[1] ? Way::device : Way::host;
    ++looks_;
}

}  // namespace halo
