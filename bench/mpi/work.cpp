#include "work.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "support/mpi_program.h"

namespace mpi_bench {

namespace {

constexpr int kLanes = 256;
constexpr int kSweepsPerUnit = 4;

alignas(64) std::array<double, kLanes> lanes{};

}  // namespace

// One copy for all callers, at one alignment: two inlined copies of this loop were seen to differ by a factor
// of two, and the time of the work alone would say nothing about that of the same work after a post.
[[gnu::noinline, gnu::aligned(64)]] void compute(std::uint64_t units) {
    for (std::uint64_t sweep = 0; sweep < units * kSweepsPerUnit; ++sweep) {
        for (double& lane : lanes)
            lane = lane * 0.999 + 0.001;                    // tends to 1: neither overflow nor denormals
        asm volatile("" : : "g"(lanes.data()) : "memory");  // every sweep is carried out
    }
}

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
