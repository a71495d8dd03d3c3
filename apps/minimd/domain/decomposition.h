// The grid of ranks: a box cut into equal subdomains, one a rank, with periodic neighbours.
//
// The grid is the one with the smallest surface between subdomains, as miniMD chooses it. Immutable; any
// thread.
#pragma once

#include <mpi.h>

#include <array>

#include "minimd/setup/atoms.h"

namespace minimd {

class Decomposition {
  public:
    // Collective over `comm`, which must outlive this and is not duplicated.
    Decomposition(MPI_Comm comm, const Vec3& box);

    MPI_Comm comm() const { return comm_; }
    int rank() const { return rank_; }
    int ranks() const { return grid_[0] * grid_[1] * grid_[2]; }
    const Vec3& box() const { return box_; }
    const std::array<int, 3>& grid() const { return grid_; }
    const std::array<int, 3>& place() const { return place_; }
    const Vec3& lo() const { return lo_; }
    const Vec3& hi() const { return hi_; }

    // The rank `steps` places away in dimension `dim`, periodically.
    int neighbor(int dim, int steps) const;
    // Bounds of the subdomain at `place` in `dim`; every rank computes the same numbers.
    double lower_bound(int dim, int place) const { return box_[dim] * place / grid_[dim]; }
    bool contains(const Vec3& x) const {
        for (int d = 0; d < 3; ++d)
            if (x[d] < lo_[d] || x[d] >= hi_[d]) return false;
        return true;
    }

  private:
    MPI_Comm comm_;
    int rank_ = 0;
    Vec3 box_, lo_{}, hi_{};
    std::array<int, 3> grid_{1, 1, 1}, place_{};
};

}  // namespace minimd
