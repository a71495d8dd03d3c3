// The loops over pairs, compiled once for each instruction set and number of lanes.
//
// Positions and forces are blocks (cells/layout.h), aligned to 128 bytes. A kernel adds to `f`; the caller has
// zeroed it. Any number of threads may run one at a time as long as each has an `f` of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace minimd {

// The blocks that one cluster meets: blocks[begin ... end), of which the first `masked` may hold atoms of the cluster
// itself or, in a half list, atoms whose pair is listed elsewhere.
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
    // Forces on the blocks' atoms too. In masked blocks only later slots than an atom's own then count, else all but its own.
    bool both_sides = true;
};

template <typename Real>
struct Kernels {
    int lanes = 0;
    const char* instructions = "";
    EnergyVirial (*lennard_jones)(const Real* x, Real* f, const PairRows& pairs, const LjParameters& parameters,
                                  ForceFlags flags) = nullptr;
    // Keeps those of the `count` blocks at `candidates` that have an atom within `range` of the cluster; `kept` may be
    // `candidates`. Returns how many.
    std::size_t (*prune)(const Real* x, std::int32_t cluster, const std::int32_t* candidates, std::size_t count,
                         Real range, std::int32_t* kept) = nullptr;
};

// The kernels with `lanes` lanes on the best instruction set here; 0: with the number of lanes that is fastest on it.
// Throws std::invalid_argument where there are none with so many lanes.
template <typename Real>
const Kernels<Real>& kernels(int lanes = 0);

}  // namespace minimd
