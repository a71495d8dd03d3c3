// Measures a pattern as `offpath bench overlap` does: alone, beside a computation, and the computation alone.
#pragma once

#include "sim/programs/patterns.h"

#include <string>

namespace offpath::sim {

struct MeasureSpec {
    std::string pattern;
    std::uint64_t bytes = 0;
    std::uint32_t iterations = 3;
    // Work of each rank; negative: as much as takes as long as the pattern alone.
    double compute_s = -1;
    double skew_s = 0;   // ranks begin up to this much after one another
    double pause_s = 0;  // of all ranks before each repetition: what was on its way arrives, and buckets fill
    bool only_alone = false;  // no computations: compute_s and total_s are 0
    double noise = 0;         // standard deviation of a computation's length, as a share of it
};

// Times in seconds: of the slowest rank, medians over the iterations.
struct Measured {
    double pure_s = 0, compute_s = 0, total_s = 0, post_s = 0;
    // How much of pure_s the computation hides, from 0 to 100.
    double overlap_percent = 0;
    bool right = true;
};

// Throws what Job::run() and make_step() throw.
Measured measure(Job& job, const MeasureSpec& spec);

}  // namespace offpath::sim
