// Pairs on several threads. Each thread adds to forces of its own, which are then summed up.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "minimd/base/layout.h"
#include "minimd/kernels/kernels.h"

namespace minimd {

// Splits `pairs` into `count` parts with about the same number of rows.
inline std::vector<PairRows> equal_parts(const PairRows& pairs, std::size_t count) {
    std::vector<PairRows> parts;
    for (std::size_t p = 0; p < count; ++p) {
        const std::size_t first = pairs.rows.size() * p / count, end = pairs.rows.size() * (p + 1) / count;
        parts.push_back({pairs.rows.subspan(first, end - first), pairs.blocks});
    }
    return parts;
}

// Adds the forces of all `parts` to the `reals` numbers at `f`, on as many threads as there are parts. The
// caller keeps `spare` from call to call. It holds the forces of all threads but the first.
template <typename Real>
EnergyVirial add_on_threads(LennardJonesKernel<Real> kernel, const Real* x, Real* f, std::size_t reals,
                            std::span<const PairRows> parts, const LjParameters& parameters, ForceFlags flags,
                            std::vector<AlignedVector<Real>>& spare) {
    if (parts.size() == 1) return kernel(x, f, parts[0], parameters, flags);
    std::vector<EnergyVirial> sums(parts.size());
    spare.resize(parts.size() - 1);
#pragma omp parallel num_threads(static_cast<int>(parts.size()))
    {
        // OpenMP may give fewer threads than requested.
        const auto thread = static_cast<std::size_t>(omp_get_thread_num());
        const auto threads = static_cast<std::size_t>(omp_get_num_threads());
        Real* mine = f;
        if (thread > 0) {
            spare[thread - 1].resize(reals);
            mine = spare[thread - 1].data();
            std::fill(mine, mine + reals, Real{0});
        }
        for (std::size_t part = thread; part < parts.size(); part += threads)
            sums[part] = kernel(x, mine, parts[part], parameters, flags);
#pragma omp barrier
        for (std::size_t other = 0; other + 1 < threads; ++other) {
            const Real* __restrict from = spare[other].data();
            Real* __restrict to = f;
#pragma omp for simd schedule(static)
            for (std::size_t i = 0; i < reals; ++i)
                to[i] += from[i];
        }
    }
    EnergyVirial sum;
    for (const EnergyVirial& each : sums)
        sum += each;
    return sum;
}

}  // namespace minimd
