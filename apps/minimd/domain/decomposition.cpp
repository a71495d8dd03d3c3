#include "minimd/domain/decomposition.h"

#include <limits>
#include <utility>

namespace minimd {

namespace {

std::array<int, 3> best_grid(int ranks, const Vec3& box) {
    std::array<int, 3> best{ranks, 1, 1};
    double least = std::numeric_limits<double>::infinity();
    for (int x = 1; x <= ranks; ++x) {
        if (ranks % x != 0) continue;
        for (int y = 1; y <= ranks / x; ++y) {
            if (ranks / x % y != 0) continue;
            const int z = ranks / x / y;
            const double surface =
                box[0] * box[1] / (x * y) + box[0] * box[2] / (x * z) + box[1] * box[2] / (y * z);
            if (surface < least) {
                least = surface;
                best = {x, y, z};
            }
        }
    }
    return best;
}

}  // namespace

Decomposition::Decomposition(MPI_Comm comm, const Vec3& box) : comm_(comm), box_(box) {
    int ranks = 1;
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &ranks);
    find_place(ranks);
}

Decomposition::Decomposition(MPI_Comm comm, const Vec3& box, int rank, std::vector<Seat> seats)
    : comm_(comm), rank_(rank), box_(box), seats_(std::move(seats)) {
    find_place(static_cast<int>(seats_.size()));
}

void Decomposition::find_place(int ranks) {
    grid_ = best_grid(ranks, box_);
    place_ = {rank_ / (grid_[1] * grid_[2]), rank_ / grid_[2] % grid_[1], rank_ % grid_[2]};
    for (int d = 0; d < 3; ++d) {
        lo_[d] = lower_bound(d, place_[d]);
        hi_[d] = lower_bound(d, place_[d] + 1);
    }
}

int Decomposition::neighbor(int dim, int steps) const {
    std::array<int, 3> at = place_;
    at[dim] = ((at[dim] + steps) % grid_[dim] + grid_[dim]) % grid_[dim];
    return (at[0] * grid_[1] + at[1]) * grid_[2] + at[2];
}

}  // namespace minimd
