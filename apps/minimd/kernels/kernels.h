// The loops over pairs, compiled once for each instruction set and number of lanes.
//
// Positions and forces are in blocks (base/layout.h), aligned to 128 bytes. A kernel adds to `f`, which the
// caller has set to zero. Any number of threads may run kernels at the same time if each has an `f` of its
// own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "minimd/base/layout.h"

namespace minimd {

// The blocks that one cluster meets: blocks[begin ... end). The first `masked` of them may hold atoms of the
// cluster itself or, in a half list, atoms whose pair is listed elsewhere.
struct PairRow {
    std::int32_t cluster = 0;
    std::int32_t begin = 0, end = 0;
    std::int32_t masked = 0;
};

struct PairRows {
    std::span<const PairRow> rows;
    const std::int32_t* blocks = nullptr;
};

struct LjParameters {
    double cutoff = 2.5, epsilon = 1.0, sigma = 1.0;
    int intensity = 1;  // the force is the mean of this many evaluations; >= 1
};

// The sums over the rows of a kernel. Every listed pair counts in full.
struct EnergyVirial {
    double energy = 0.0, virial = 0.0;
    EnergyVirial& operator+=(const EnergyVirial& other) {
        energy += other.energy;
        virial += other.virial;
        return *this;
    }
};

struct ForceFlags {
    bool energy = false;  // whether to compute energy and virial
    // Whether to add forces on the blocks' atoms, too. If so, an atom meets only later slots than its own in
    // masked blocks. If not, it meets all slots but its own.
    bool both_sides = true;
};

// Boxes around the atoms of blocks, rounded outwards. There is one array for each side, with room for 16 more
// entries at the end. `x` has the atoms, in blocks, in single precision.
struct BlockBoxes {
    std::array<const float*, 3> lo, hi;
    const float* x;
};

struct Box {
    std::array<float, 3> lo, hi;
};

// For some columns, the blocks that may still come into range of the next clusters. Clusters come in the
// order of z. All arrays have room for 16 more entries.
struct Windows {
    std::size_t count = 0;
    AlignedVector<float> x_lo, x_hi, y_lo, y_hi;  // the columns' sides
    AlignedVector<float> reach;                   // how far above and below a cluster to look
    AlignedVector<std::int32_t> next, end;        // blocks, in the order of z; `next` moves on
    AlignedVector<std::int32_t> near;             // for use by the search

    void clear() { count = 0; }
    void add(const std::array<float, 2>& x, const std::array<float, 2>& y, float how_far,
             std::int32_t first_block, std::int32_t end_block) {
        if (near.size() < count + 17) resize(2 * count + 64);
        x_lo[count] = x[0];
        x_hi[count] = x[1];
        y_lo[count] = y[0];
        y_hi[count] = y[1];
        reach[count] = how_far;
        next[count] = first_block;
        end[count++] = end_block;
    }

  private:
    void resize(std::size_t size) {
        for (AlignedVector<float>* each : {&x_lo, &x_hi, &y_lo, &y_hi, &reach})
            each->resize(size);
        for (AlignedVector<std::int32_t>* each : {&next, &end, &near})
            each->resize(size);
    }
};

// Appends to `found` the blocks in `windows` that have an atom within `range` of `cluster`. `found` must have
// room for all blocks of the windows and 16 more. Returns the number of blocks found.
using SearchKernel = std::size_t (*)(const BlockBoxes& boxes, const Box& box, std::int32_t cluster,
                                     Windows& windows, float range, std::int32_t* found);

template <typename Real>
using LennardJonesKernel = EnergyVirial (*)(const Real* x, Real* f, const PairRows& pairs,
                                            const LjParameters& parameters, ForceFlags flags);

template <typename Real>
struct Kernels {
    int lanes = 0;
    LennardJonesKernel<Real> lennard_jones = nullptr;
    SearchKernel search = nullptr;
};

// Returns the kernels with `lanes` lanes, compiled for the best instruction set of this processor. For 0,
// returns those with the number of lanes that is fastest here. Throws std::invalid_argument if there are no
// kernels with `lanes` lanes.
template <typename Real>
const Kernels<Real>& kernels(int lanes = 0);

}  // namespace minimd
