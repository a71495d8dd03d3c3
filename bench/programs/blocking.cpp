// Programs that call blocking MPI only.
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "patterns.h"

namespace programs {

namespace {

int above(const World& world) {
    return world.rank > 0 ? world.rank - 1 : MPI_PROC_NULL;
}
int below(const World& world) {
    return world.rank + 1 < world.ranks ? world.rank + 1 : MPI_PROC_NULL;
}

// Rows of a plane, with one row of the neighbours above and below.
class Plane {
  public:
    Plane(int rows, int columns) : rows_(rows), columns_(columns), values_(size(rows + 2, columns)) {}
    double* row(int i) { return values_.data() + static_cast<std::ptrdiff_t>(i) * columns_; }
    int rows() const { return rows_; }
    int columns() const { return columns_; }
    void swap(Plane& other) { values_.swap(other.values_); }

    void exchange(const World& world) {
        MPI_Sendrecv(row(1), columns_, MPI_DOUBLE, above(world), 1, row(rows_ + 1), columns_, MPI_DOUBLE,
                     below(world), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(row(rows_), columns_, MPI_DOUBLE, below(world), 2, row(0), columns_, MPI_DOUBLE,
                     above(world), 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }

  private:
    static std::size_t size(int rows, int columns) {
        return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
    }

    int rows_, columns_;
    std::vector<double> values_;
};

double dot(Plane& a, Plane& b) {
    double sum = 0;
    for (int i = 1; i <= a.rows(); ++i)
        for (int j = 0; j < a.columns(); ++j)
            sum += a.row(i)[j] * b.row(i)[j];
    double total = 0;
    MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return total;
}

// The five-point Laplacian, with zeros around the plane.
void apply(const World& world, Plane& x, Plane& y) {
    x.exchange(world);
    const int last = x.columns() - 1;
    for (int i = 1; i <= x.rows(); ++i) {
        const double *up = x.row(i - 1), *here = x.row(i), *down = x.row(i + 1);
        for (int j = 0; j <= last; ++j)
            y.row(i)[j] =
                4.0 * here[j] - up[j] - down[j] - (j > 0 ? here[j - 1] : 0) - (j < last ? here[j + 1] : 0);
    }
}

}  // namespace

// u = x + y + t solves "the mean of the neighbours, plus 1" exactly, so a row of an earlier step shows.
bool stencil(const World& world, int steps) {
    const int columns = 1024, rows = std::max(1, 1024 / world.ranks), first = world.rank * rows;
    Plane now(rows, columns), next(rows, columns);
    const auto exact = [&](int i, int j, int t) { return first + i - 1.0 + j + t; };
    const auto edges = [&](Plane& plane, int t) {
        for (int i = 0; i <= rows + 1; ++i) {
            plane.row(i)[0] = exact(i, 0, t);
            plane.row(i)[columns - 1] = exact(i, columns - 1, t);
        }
        for (int j = 0; j < columns; ++j) {
            if (world.rank == 0) plane.row(0)[j] = exact(0, j, t);
            if (world.rank == world.ranks - 1) plane.row(rows + 1)[j] = exact(rows + 1, j, t);
        }
    };
    for (int i = 1; i <= rows; ++i)
        for (int j = 0; j < columns; ++j)
            now.row(i)[j] = exact(i, j, 0);
    edges(now, 0);
    for (int t = 1; t <= steps; ++t) {
        now.exchange(world);
        for (int i = 1; i <= rows; ++i)
            for (int j = 1; j < columns - 1; ++j)
                next.row(i)[j] =
                    0.25 * (now.row(i - 1)[j] + now.row(i + 1)[j] + now.row(i)[j - 1] + now.row(i)[j + 1]) +
                    1;
        edges(next, t);
        now.swap(next);
    }
    for (int i = 1; i <= rows; ++i)
        for (int j = 0; j < columns; ++j)
            if (now.row(i)[j] != exact(i, j, steps)) return false;
    return true;
}

// Two sums of one number in every iteration, as in any Krylov solver. The residual that the iteration carries
// along must be the true one.
bool conjugate_gradient(const World& world, int steps) {
    const int columns = 256, rows = std::max(1, 256 / world.ranks);
    Plane x(rows, columns), r(rows, columns), p(rows, columns), q(rows, columns);
    for (int i = 1; i <= rows; ++i)
        std::fill_n(r.row(i), columns, 1.0), std::fill_n(p.row(i), columns, 1.0);
    double rr = dot(r, r);
    for (int step = 0; step < steps && rr > 0; ++step) {
        apply(world, p, q);
        const double alpha = rr / dot(p, q);
        for (int i = 1; i <= rows; ++i)
            for (int j = 0; j < columns; ++j) {
                x.row(i)[j] += alpha * p.row(i)[j];
                r.row(i)[j] -= alpha * q.row(i)[j];
            }
        const double next = dot(r, r);
        for (int i = 1; i <= rows; ++i)
            for (int j = 0; j < columns; ++j)
                p.row(i)[j] = r.row(i)[j] + next / rr * p.row(i)[j];
        rr = next;
    }
    apply(world, x, q);
    double worst = 0;
    for (int i = 1; i <= rows; ++i)
        for (int j = 0; j < columns; ++j)
            worst = std::max(worst, std::abs(1 - q.row(i)[j] - r.row(i)[j]));
    return worst < 1e-6;
}

bool ping_pong(const World& world, int steps) {
    const int partner = world.rank ^ 1;
    if (partner >= world.ranks) return true;
    bool right = true;
    for (int step = 0; step < steps; ++step) {
        for (const int count : {1, 128, 2048, 8192, 131072}) {
            std::vector<double> data(static_cast<std::size_t>(count), step + count);
            if (world.rank < partner) {
                MPI_Send(data.data(), count, MPI_DOUBLE, partner, 3, MPI_COMM_WORLD);
                std::fill(data.begin(), data.end(), 0);
                MPI_Recv(data.data(), count, MPI_DOUBLE, partner, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else {
                std::fill(data.begin(), data.end(), 0);
                MPI_Recv(data.data(), count, MPI_DOUBLE, partner, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                MPI_Send(data.data(), count, MPI_DOUBLE, partner, 3, MPI_COMM_WORLD);
            }
            right = right && data.front() == step + count && data.back() == step + count;
        }
    }
    return right;
}

// A sweep: every rank computes a block from the block of the rank before it.
bool wavefront(const World& world, int steps) {
    constexpr int kCells = 8192;
    std::vector<double> block(kCells);
    bool right = true;
    for (int step = 0; step < steps; ++step) {
        const bool forth = step % 2 == 0;
        const int from = forth ? above(world) : below(world), to = forth ? below(world) : above(world);
        std::fill(block.begin(), block.end(), step);
        MPI_Recv(block.data(), kCells, MPI_DOUBLE, from, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int pass = 0; pass < 10; ++pass)
            for (double& cell : block)
                cell = cell * 1.5 + 1;
        for (int pass = 0; pass < 10; ++pass)
            for (double& cell : block)
                cell = (cell - 1) / 1.5;
        for (double& cell : block)
            cell = std::round(cell) + 1;
        MPI_Send(block.data(), kCells, MPI_DOUBLE, to, 4, MPI_COMM_WORLD);
        const int place = forth ? world.rank : world.ranks - 1 - world.rank;
        right = right && block.front() == step + place + 1 && block.back() == step + place + 1;
    }
    return right;
}

}  // namespace programs
