// The grid of ranks. It cuts the box into equal subdomains, one for each rank, with periodic neighbours.
//
// Of all possible grids, this is the one with the smallest surface between subdomains, which miniMD chooses
// too. Objects are immutable, so any thread may use them.
#pragma once

#include <mpi.h>

#include <array>
#include <vector>

#include "minimd/base/atoms.h"

namespace minimd {

// The process that acts for a rank of the grid. A process may act for several ranks.
struct Seat {
    int process = 0;
    int index = 0;  // the rank's index among those of the process
};

class Decomposition {
  public:
    // Builds the grid of the ranks of `comm`. The communicator is not duplicated and must outlive this
    // object. Collective over `comm`.
    Decomposition(MPI_Comm comm, const Vec3& box);
    // Builds a grid of seats.size() ranks, seen from its rank `rank`. A seat of the grid is a process of
    // `comm`, and messages go from seat to seat.
    Decomposition(MPI_Comm comm, const Vec3& box, int rank, std::vector<Seat> seats);

    MPI_Comm comm() const { return comm_; }
    int rank() const { return rank_; }
    int ranks() const { return grid_[0] * grid_[1] * grid_[2]; }
    const Vec3& box() const { return box_; }
    const std::array<int, 3>& grid() const { return grid_; }
    const std::array<int, 3>& place() const { return place_; }
    const Vec3& lo() const { return lo_; }
    const Vec3& hi() const { return hi_; }

    // Returns the rank that is `steps` places away in dimension `dim`, periodically.
    int neighbor(int dim, int steps) const;
    // The process of comm() that acts for rank `rank` of the grid, and the tag of a message from rank `from`
    // to rank `to`. The tag tells the message from those of other ranks that the same two processes act for.
    // `kind` is less than 128.
    int process(int rank) const {
        return seats_.empty() ? rank : seats_[static_cast<std::size_t>(rank)].process;
    }
    int tag(int kind, int from, int to) const {
        if (seats_.empty()) return kind;
        return kind + 128 * (64 * seats_[static_cast<std::size_t>(from)].index +
                             seats_[static_cast<std::size_t>(to)].index);
    }

    // The lower bound in `dim` of the subdomain at `place`. Every rank computes exactly the same number.
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
    std::vector<Seat> seats_;  // empty: every rank is a process of its own
};

}  // namespace minimd
