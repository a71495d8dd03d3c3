// The two loops over pairs of the embedded-atom method, compiled like those of kernels.h.
//
// The first loop looks for pairs in range and adds up densities. For the second loop it leaves two numbers
// for every pair, in the order in which the pairs were found. For every block with a pair, it also leaves the
// lanes that have one. Between the loops the caller computes the derivatives of the embedding energy. An
// array of one number for each slot (density, derivative) is in the order of slots.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "minimd/kernels/kernels.h"

namespace minimd {

// Cubic polynomials, eight coefficients for each interval of distances: first those of the density, highest
// power first, then those of the pair energy times the distance. Their argument p, from 0 to 1, is the part
// of the distance (in intervals) beyond the interval's beginning. Rows are aligned to 64 bytes at least.
template <typename Real>
struct EamTable {
    static constexpr std::size_t row_size = 8;

    const Real* rows = nullptr;
    std::int32_t last_row = 0;  // for all larger distances, too, with p = 1
    Real per_spacing = 1;
    Real cutoff = 0;
};

// A block with pairs in range. Lane l and the cluster's atom r are such a pair if bit l of lanes[2 * r] is
// set, or for l >= 8, bit l - 8 of lanes[2 * r + 1].
struct EamBlock {
    std::int32_t block;
    std::array<std::uint8_t, 8> lanes;
};

struct EamRow {
    std::int32_t cluster;
    std::size_t begin, end;  // range of EamBlocks
};

// Room for what the first loop finds, and the amount that is there. The loop appends. The caller must provide
// the following room, and 64 more bytes of each kind:
// - rows: two for each row that the loop gets, and one more for each 32 blocks;
// - blocks: an EamBlock for each block;
// - pairs: 4 * lanes for each block.
template <typename Real>
struct EamPairs {
    EamRow* rows = nullptr;
    EamBlock* blocks = nullptr;
    // The force divided by the distance is by_density * (both atoms' derivatives) + by_distance.
    Real* by_density = nullptr;
    Real* by_distance = nullptr;
    std::size_t row_count = 0, block_count = 0, pair_count = 0;
};

// Adds to `density` of the clusters' atoms, and of the blocks' atoms, too, if flags.both_sides. Returns the
// sum of pair energies if flags.energy.
template <typename Real>
using EamDensityKernel = double (*)(const Real* x, Real* density, const PairRows& rows,
                                    const EamTable<Real>& table, ForceFlags flags, EamPairs<Real>& pairs);

// Adds the forces to `f`, on the sides that the flags of the first loop gave. `derivative` must be finite for
// all slots, fillers included. Returns the virial if flags.energy.
template <typename Real>
using EamForceKernel = double (*)(const Real* x, const Real* derivative, Real* f, const EamPairs<Real>& pairs,
                                  ForceFlags flags);

template <typename Real>
struct EamKernels {
    EamDensityKernel<Real> density = nullptr;
    EamForceKernel<Real> force = nullptr;
};

// Returns the kernels with `lanes` lanes, which Kernels must have, too.
template <typename Real>
EamKernels<Real> eam_kernels(int lanes);

}  // namespace minimd
