#include "ring-hpl/matrix.h"

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace ring_hpl {

namespace {

double entry(std::uint64_t key) {
    key = (key + 1) * 0x9e3779b97f4a7c15ULL;
    key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9ULL;
    key = (key ^ (key >> 27)) * 0x94d049bb133111ebULL;
    return static_cast<double>(static_cast<std::int64_t>(key ^ (key >> 31))) * 0x1p-64;
}

// Returns the maximum norm; NaN counts as infinite.
double norm(const std::vector<double>& values) {
    double largest = 0;
    for (const double value : values)
        largest = std::isnan(value) ? INFINITY : std::max(largest, std::abs(value));
    return largest;
}

}  // namespace

int Shape::local_columns_before(int block) const {
    const int full_rounds = block / ranks, rest = block % ranks;
    const int own_blocks = full_rounds + (rank < rest ? 1 : 0);
    int columns = own_blocks * nb;
    if (block == blocks() && owner(blocks() - 1) == rank) columns -= nb - width(blocks() - 1);
    return columns;
}

void generate_column(const Shape& shape, int column, double* values) {
    const std::uint64_t first = static_cast<std::uint64_t>(column) * shape.n;
    for (int row = 0; row < shape.n; ++row)
        values[row] = entry(first + row);
}

std::vector<double> generate_local_matrix(const Shape& shape) {
    std::vector<double> matrix(static_cast<std::size_t>(shape.local_columns()) * shape.n);
    double* next = matrix.data();
    for (int block = shape.rank; block < shape.blocks(); block += shape.ranks) {
        for (int i = 0; i < shape.width(block); ++i, next += shape.n)
            generate_column(shape, shape.first_column(block) + i, next);
    }
    return matrix;
}

std::vector<double> generate_right_hand_side(const Shape& shape) {
    std::vector<double> values(shape.n);
    generate_column(shape, shape.n, values.data());
    return values;
}

double scaled_residual(const Shape& shape, const std::vector<double>& x) {
    std::vector<double> column(shape.n), product(shape.n), row_sums(shape.n);
    for (int block = shape.rank; block < shape.blocks(); block += shape.ranks) {
        for (int i = 0; i < shape.width(block); ++i) {
            const int j = shape.first_column(block) + i;
            generate_column(shape, j, column.data());
            for (int row = 0; row < shape.n; ++row) {
                product[row] += column[row] * x[j];
                row_sums[row] += std::abs(column[row]);
            }
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, product.data(), shape.n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, row_sums.data(), shape.n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    const std::vector<double> b = generate_right_hand_side(shape);
    std::vector<double> difference(shape.n);
    for (int row = 0; row < shape.n; ++row)
        difference[row] = product[row] - b[row];
    const double scale =
        std::numeric_limits<double>::epsilon() * (norm(row_sums) * norm(x) + norm(b)) * shape.n;
    const double residual = norm(difference) / scale;
    return std::isnan(residual) ? INFINITY : residual;
}

}  // namespace ring_hpl
