// Atoms for tests of the engine, and their expected forces: sums over all pairs and images, in plain loops.
#pragma once

#include <mpi.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "minimd/base/atoms.h"
#include "minimd/kernels/kernels.h"
#include "minimd/setup/eam_tables.h"

namespace minimd {

// The numbers of threads that a test tries on each rank. Jobs of many ranks, which share few cores, leave
// more than one thread to smaller jobs.
inline std::vector<int> thread_counts() {
    int ranks = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    return ranks > 2 ? std::vector<int>{1} : std::vector<int>{1, 2};
}

// Returns a cubic lattice of about `spacing` that fills the box. Each atom is off its site by up to `jitter`
// in each dimension and has a random velocity. The result is the same on every rank.
inline AtomList jittered(const Vec3& box, double spacing, double jitter, unsigned seed = 1) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> uniform(-1.0, 1.0);
    std::array<int, 3> n;
    for (std::size_t d = 0; d < 3; ++d)
        n[d] = std::max(1, static_cast<int>(box[d] / spacing));
    AtomList atoms;
    for (int i = 0; i < n[0]; ++i)
        for (int j = 0; j < n[1]; ++j)
            for (int k = 0; k < n[2]; ++k) {
                const std::array<int, 3> site{i, j, k};
                Vec3 x, v;
                for (std::size_t d = 0; d < 3; ++d) {
                    x[d] = (site[d] + 0.5) * box[d] / n[d] + jitter * uniform(random);
                    x[d] -= std::floor(x[d] / box[d]) * box[d];
                    v[d] = uniform(random);
                }
                atoms.id.push_back(static_cast<std::int64_t>(atoms.id.size()) + 1);
                atoms.type.push_back(0);
                atoms.x.push_back(x);
                atoms.v.push_back(v);
            }
    return atoms;
}

// Calls call(i, j, image, d, r2) once for each pair of atoms i <= j and image of j in range. `image` is the
// shift of j's position in boxes, and d = x_i - x_j for that image.
template <typename Call>
void for_each_pair(const AtomList& atoms, const Vec3& box, double range, Call&& call) {
    std::array<int, 3> reach;
    for (std::size_t d = 0; d < 3; ++d)
        reach[d] = static_cast<int>(std::ceil(range / box[d])) + 1;
    for (std::size_t i = 0; i < atoms.size(); ++i)
        for (std::size_t j = i; j < atoms.size(); ++j) {
            std::array<int, 3> image;
            Vec3 delta;
            // Returns whether the atoms are in range along dimension `d` alone.
            const auto near = [&](std::size_t d, int shift) {
                image[d] = shift;
                delta[d] = atoms.x[i][d] - (atoms.x[j][d] + shift * box[d]);
                return std::abs(delta[d]) < range;
            };
            for (int a = -reach[0]; a <= reach[0]; ++a) {
                if (!near(0, a)) continue;
                for (int b = -reach[1]; b <= reach[1]; ++b) {
                    if (!near(1, b)) continue;
                    for (int c = -reach[2]; c <= reach[2]; ++c) {
                        if (!near(2, c)) continue;
                        if (i == j && !(image > std::array<int, 3>{0, 0, 0})) continue;
                        const double r2 = delta[0] * delta[0] + delta[1] * delta[1] + delta[2] * delta[2];
                        if (r2 < range * range) call(i, j, image, delta, r2);
                    }
                }
            }
        }
}

struct ExpectedForces {
    std::vector<Vec3> f;
    EnergyVirial sum;

    // `over_r` is the force divided by the distance.
    void add(std::size_t i, std::size_t j, const Vec3& delta, double r2, double over_r, double energy) {
        for (std::size_t d = 0; d < 3; ++d) {
            f[i][d] += over_r * delta[d];
            f[j][d] -= over_r * delta[d];
        }
        sum.energy += energy;
        sum.virial += over_r * r2;
    }
};

inline ExpectedForces expected_lennard_jones(const AtomList& atoms, const Vec3& box,
                                             const LjParameters& parameters) {
    ExpectedForces expected{std::vector<Vec3>(atoms.size()), {}};
    for_each_pair(atoms, box, parameters.cutoff,
                  [&](std::size_t i, std::size_t j, const std::array<int, 3>&, const Vec3& delta, double r2) {
                      const double s6 = std::pow(parameters.sigma * parameters.sigma / r2, 3);
                      expected.add(i, j, delta, r2, 24 * parameters.epsilon * s6 * (2 * s6 - 1) / r2,
                                   4 * parameters.epsilon * s6 * (s6 - 1));
                  });
    return expected;
}

// Smooth tables with a cutoff of 2.5, for atoms about 1 apart.
inline EamTables smooth_tables() {
    constexpr int knots = 300;
    constexpr double cutoff = 2.5, dr = cutoff / (knots - 1), drho = 0.1;
    std::vector<double> embedding, density, energy;
    for (int k = 0; k < knots; ++k) {
        const double r = k * dr, fade = (1 - r / cutoff) * (1 - r / cutoff);
        embedding.push_back(-2.0 * std::sqrt(k * drho + 0.01));
        density.push_back(3.0 * std::exp(-1.2 * r) * fade);
        energy.push_back(9.0 * std::exp(-2.0 * r) * fade);
    }
    EamTables tables;
    tables.cutoff = cutoff;
    tables.frho = Spline(embedding, drho);
    tables.rhor = Spline(density, dr);
    tables.z2r = Spline(energy, dr);
    return tables;
}

inline ExpectedForces expected_eam(const AtomList& atoms, const Vec3& box, const EamTables& tables) {
    ExpectedForces expected{std::vector<Vec3>(atoms.size()), {}};
    std::vector<double> density(atoms.size()), derivative(atoms.size());
    for_each_pair(atoms, box, tables.cutoff,
                  [&](std::size_t i, std::size_t j, const std::array<int, 3>&, const Vec3&, double r2) {
                      density[i] += tables.rhor.at(std::sqrt(r2)).value;
                      density[j] += tables.rhor.at(std::sqrt(r2)).value;
                  });
    for (std::size_t i = 0; i < atoms.size(); ++i) {
        const Spline::Point point = tables.frho.at(density[i]);
        expected.sum.energy += point.value;
        derivative[i] = point.slope;
    }
    for_each_pair(atoms, box, tables.cutoff,
                  [&](std::size_t i, std::size_t j, const std::array<int, 3>&, const Vec3& delta, double r2) {
                      const double r = std::sqrt(r2);
                      const Spline::Point z2 = tables.z2r.at(r);
                      const double slope = (derivative[i] + derivative[j]) * tables.rhor.at(r).slope +
                                           z2.slope / r - z2.value / r2;
                      expected.add(i, j, delta, r2, -slope / r, z2.value / r);
                  });
    return expected;
}

}  // namespace minimd
