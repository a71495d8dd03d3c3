// Velocities as miniMD draws them, and their exact sums.
//
// Each component is k / (2^31 - 1), where the whole number k comes from Park and Miller's minimal standard
// generator (Communications of the ACM 31, 1988). The generator is seeded with the number of the lattice site
// and advanced by 6 draws for each component. Sums of k and k^2 are whole numbers, so they do not depend on
// the order of the atoms.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>

#include "minimd/base/atoms.h"

namespace minimd {

using Draws = std::array<std::uint32_t, 3>;

inline constexpr std::uint64_t park_miller_modulus = 2147483647;

// Returns the draws of a lattice site. `site` is at least 1. Sites beyond the modulus repeat the first ones.
Draws draws_of_site(std::int64_t site);

class DrawSums {
  public:
    void add(const Draws& draws);
    // Adds up the sums of all ranks, on every rank. Collective.
    void reduce(MPI_Comm comm);

    // Returns the mean of the velocities k / (2^31 - 1) in each dimension. `atoms` is the number of draws of
    // each component.
    Vec3 mean(std::int64_t atoms) const;
    // Returns the sum, over components and atoms, of the squared distance to the mean.
    double squares_about_mean(std::int64_t atoms) const;

  private:
    __extension__ using Wide = unsigned __int128;

    std::array<Wide, 3> sum_{};
    Wide squares_ = 0;
};

}  // namespace minimd
