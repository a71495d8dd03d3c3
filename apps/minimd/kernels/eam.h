// The two loops over pairs of the embedded-atom method, compiled as those of kernels.h.
//
// The first looks for pairs in range, adds up densities, and leaves for the second what it takes of the
// force: of every pair two numbers, in the order in which they were found, and of every block that has a
// pair which lanes are in it. Between the two the derivatives of the embedding energy are computed. One
// number a slot (density, derivative) lies in the order of slots.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "minimd/kernels/kernels.h"

namespace minimd {

// Cubic polynomials, eight coefficients for each interval of distances: those of the density (that of p^3
// first), then those of the pair energy times the distance; p is what is beyond the interval's beginning, 0
// to 1. On 64-byte boundaries at least.
template <typename Real>
struct EamTable {
    static constexpr std::size_t row_size = 8;

    const Real* rows = nullptr;
    std::int32_t last_row = 0;  // for all distances beyond it too, with p = 1
    Real per_spacing = 1;
    Real cutoff = 0;
};

// A block with pairs in range; bit l of lanes[2 * r] (and beyond 8, of the byte after it) is lane l's pair
// with the cluster's atom r.
struct EamBlock {
    std::int32_t block;
    std::array<std::uint8_t, 8> lanes;
};

struct EamRow {
    std::int32_t cluster;
    std::size_t begin, end;  // of EamBlocks
};

// Places for what the first loop finds, and how much is there; it appends. What rows it is given must not be
// more than there is room for: two rows for each and one more for each 32 blocks, an EamBlock for each
// block, 4 * lanes pairs for each block; and 64 bytes more of each.
template <typename Real>
struct EamPairs {
    EamRow* rows = nullptr;
    EamBlock* blocks = nullptr;
    // The force divided by the distance is by_density * (both atoms' derivatives) + by_distance.
    Real* by_density = nullptr;
    Real* by_distance = nullptr;
    std::size_t row_count = 0, block_count = 0, pair_count = 0;
};

// Adds to `density`; to the blocks' atoms too if flags.both_sides. Returns the sum of pair energies if they
// are wanted.
template <typename Real>
using EamDensityKernel = double (*)(const Real* x, Real* density, const PairRows& rows,
                                    const EamTable<Real>& table, ForceFlags flags, EamPairs<Real>& pairs);

// Adds to `f`, as the first loop's flags said. `derivative` is finite for all slots, fillers as well.
// flags.energy asks for the virial, which is returned.
template <typename Real>
using EamForceKernel = double (*)(const Real* x, const Real* derivative, Real* f, const EamPairs<Real>& pairs,
                                  ForceFlags flags);

template <typename Real>
struct EamKernels {
    EamDensityKernel<Real> density = nullptr;
    EamForceKernel<Real> force = nullptr;
};

// Those with as many lanes as Kernels has; so many there must be.
template <typename Real>
EamKernels<Real> eam_kernels(int lanes);

}  // namespace minimd
