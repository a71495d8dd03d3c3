#include "work.h"

#include <algorithm>
#include <cmath>

#include "support/mpi_program.h"

namespace mpi_bench {

double time_compute(std::uint64_t units, Interval& interval) {
    interval.start();
    compute(units);
    return interval.elapsed();
}

std::uint64_t calibrate_units(double seconds, Interval& interval) {
    constexpr std::uint64_t kFirstGuess = 1000;
    constexpr int kRefinements = 3, kRepeats = 3;
    const auto scaled = [](std::uint64_t units, double factor) {
        return static_cast<std::uint64_t>(std::max(1.0, std::round(static_cast<double>(units) * factor)));
    };
    std::uint64_t units = kFirstGuess;
    double took = mpi_support::max_over_ranks(time_compute(units, interval));
    while (took < 0.3 * seconds) {
        units = scaled(units, std::clamp(seconds / std::max(took, 1e-9), 1.5, 10.0));
        took = mpi_support::max_over_ranks(time_compute(units, interval));
    }
    for (int refinement = 0; refinement < kRefinements; ++refinement) {
        std::vector<double> times;
        for (int repeat = 0; repeat < kRepeats; ++repeat)
            times.push_back(mpi_support::max_over_ranks(time_compute(units, interval)));
        units = scaled(units, seconds / std::max(mpi_support::median(times), 1e-9));
    }
    return units;
}

}  // namespace mpi_bench
