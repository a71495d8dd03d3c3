// The loops over pairs, compiled once for each instruction set and number of lanes.
//
// Positions and forces are blocks (base/layout.h), aligned to 128 bytes. A kernel adds to `f`; the caller
// has zeroed it. Any number of threads may run one at a time as long as each has an `f` of its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "minimd/base/layout.h"

namespace minimd {

// The blocks that one cluster meets: blocks[begin ... end), of which the first `masked` may hold atoms of the
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
    int intensity = 1;  // the force is the mean of so many evaluations; >= 1
};

// Of what the kernel ran over, every listed pair in full.
struct EnergyVirial {
    double energy = 0.0, virial = 0.0;
    EnergyVirial& operator+=(const EnergyVirial& other) {
        energy += other.energy;
        virial += other.virial;
        return *this;
    }
};

struct ForceFlags {
    bool energy = false;  // wanted?
    // Forces on the blocks' atoms too. In masked blocks only later slots than an atom's own then count, else
    // all but its own.
    bool both_sides = true;
};

// Boxes around the atoms of blocks, a little too large rather than too small; one array for each side, with
// room for 16 more at the end. `x`: the atoms, in blocks, in single precision.
struct BlockBoxes {
    std::array<const float*, 3> lo, hi;
    const float* x;
};

struct Box {
    std::array<float, 3> lo, hi;
};

// Of some columns, the blocks that may still come into range of the next clusters, which come in order of z.
// All arrays have room for 16 more.
struct Windows {
    std::size_t count = 0;
    AlignedVector<float> x_lo, x_hi, y_lo, y_hi;  // the columns
    AlignedVector<float> reach;                   // how far up and down they have to be looked at
    AlignedVector<std::int32_t> next, end;        // blocks, in order of z; `next` is moved on
    AlignedVector<std::int32_t> near;             // for the search

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

// Appends to `found` the blocks in `windows` that have an atom within `range` of `cluster`; there must be
// room for all blocks of the windows and 16 more. Returns how many.
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

// The kernels with `lanes` lanes on the best instruction set here; 0: with the number of lanes that is
// fastest on it. Throws std::invalid_argument where there are none with so many lanes.
template <typename Real>
const Kernels<Real>& kernels(int lanes = 0);

}  // namespace minimd
