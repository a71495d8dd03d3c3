// The grid of ranks: a box cut into equal subdomains, one a rank, with periodic neighbours.
//
// The grid is the one with the smallest surface between subdomains, as miniMD chooses it. Immutable; any
// thread.
#pragma once

#include <mpi.h>

#include <array>
#include <vector>

#include "minimd/base/atoms.h"

namespace minimd {

// Where a rank of the grid is acted for: a process of the communicator, which may act for several.
struct Seat {
    int process = 0;
    int index = 0;  // among those of the process
};

class Decomposition {
  public:
    // Collective over `comm`, which must outlive this and is not duplicated.
    Decomposition(MPI_Comm comm, const Vec3& box);
    // As rank `rank` of a grid of seats.size() ranks, whose messages go from seat to seat in `comm`.
    Decomposition(MPI_Comm comm, const Vec3& box, int rank, std::vector<Seat> seats);

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
    // Whom a message to a rank of the grid goes to in comm(), and under which tag, so that it meets its
    // receive. `kind` < 128.
    int process(int rank) const {
        return seats_.empty() ? rank : seats_[static_cast<std::size_t>(rank)].process;
    }
    int tag(int kind, int from, int to) const {
        if (seats_.empty()) return kind;
        return kind + 128 * (64 * seats_[static_cast<std::size_t>(from)].index +
                             seats_[static_cast<std::size_t>(to)].index);
    }

    // Bounds of the subdomain at `place` in `dim`; every rank computes the same numbers.
    double lower_bound(int dim, int place) const { return box_[dim] * place / grid_[dim]; }
    bool contains(const Vec3& x) const {
        for (int d = 0; d < 3; ++d)
            if (x[d] < lo_[d] || x[d] >= hi_[d]) return false;
        return true;
    }

  private:
    void find_place(int ranks);

    MPI_Comm comm_;
    int rank_ = 0;
    Vec3 box_, lo_{}, hi_{};
    std::array<int, 3> grid_{1, 1, 1}, place_{};
    std::vector<Seat> seats_;  // empty: every rank is its own process
};

}  // namespace minimd
