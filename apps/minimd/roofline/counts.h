// The work of a loop over pairs, counted from the lists that it runs over.
//
// Operations are those of the source code. A multiply-add counts as two. A reciprocal, or reciprocal root,
// counts the operations that refine the processor's estimate with AVX-512. Other instruction sets use a
// division, which is fewer operations that take longer. Every lane that is computed counts, whether or not
// its pair is in range. `moved` are the bytes that loads and stores ask for. `least` are the bytes that must
// come from and go to memory if caches keep nothing from one step to the next, and everything within one.
#pragma once

#include <cstddef>

#include "minimd/cells/particles.h"
#include "minimd/kernels/eam.h"
#include "minimd/kernels/kernels.h"

namespace minimd {

struct ListCounts {
    double rows = 0, blocks = 0;
    double tested = 0;    // pairs of lanes
    double in_range = 0;  // pairs within the cutoff that the loop counts
};

struct LoopCounts {
    double flops = 0, moved = 0, least = 0;
};

// `both_sides` is that of ForceFlags.
template <typename Real>
ListCounts count_pairs(const Particles<Real>& particles, const PairRows& pairs, double cutoff,
                       bool both_sides);

template <typename Real>
LoopCounts count_lennard_jones(const ListCounts& pairs, int lanes, std::size_t slots);

// `found` is what the density loop left.
template <typename Real>
LoopCounts count_eam_density(const ListCounts& pairs, const EamPairs<Real>& found, int lanes,
                             std::size_t slots);
template <typename Real>
LoopCounts count_eam_force(const EamPairs<Real>& found, int lanes, std::size_t slots);

}  // namespace minimd
