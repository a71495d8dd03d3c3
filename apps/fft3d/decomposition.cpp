#include "fft3d/decomposition.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "support/mpi_program.h"

namespace fft3d {

namespace {

// Returns the count for each peer: `fixed` times the length of the peer's block, where n is cut into `parts`
// blocks.
std::vector<int> counts_of(int n, int parts, int fixed) {
    std::vector<int> counts(parts);
    for (int index = 0; index < parts; ++index)
        counts[index] = block(n, parts, index).count * fixed;
    return counts;
}

std::vector<int> offsets_of(const std::vector<int>& counts) {
    std::vector<int> offsets(counts.size());
    std::exclusive_scan(counts.begin(), counts.end(), offsets.begin(), 0);
    return offsets;
}

Exchange make_exchange(MPI_Comm comm, std::vector<int> send_counts, std::vector<int> receive_counts) {
    Exchange exchange;
    exchange.comm = comm;
    exchange.send_offsets = offsets_of(send_counts);
    exchange.receive_offsets = offsets_of(receive_counts);
    exchange.send_counts = std::move(send_counts);
    exchange.receive_counts = std::move(receive_counts);
    return exchange;
}

std::size_t volume(int a, int b, int c) {
    return static_cast<std::size_t>(a) * static_cast<std::size_t>(b) * static_cast<std::size_t>(c);
}

}  // namespace

Range block(int n, int parts, int index) {
    const int base = n / parts, longer = n % parts;
    return {index * base + std::min(index, longer), base + (index < longer ? 1 : 0)};
}

Exchange Exchange::reversed() const {
    Exchange back = *this;
    std::swap(back.send_counts, back.receive_counts);
    std::swap(back.send_offsets, back.receive_offsets);
    return back;
}

Decomposition::Decomposition(MPI_Comm comm, std::array<int, 3> n, std::array<int, 2> grid)
    : n_(n), grid_(grid) {
    const std::size_t largest_of_all =
        std::max({volume(block(n[0], grid[0], 0).count, block(n[1], grid[1], 0).count, n[2]),
                  volume(block(n[0], grid[0], 0).count, n[1], block(n[2], grid[1], 0).count),
                  volume(n[0], block(n[1], grid[0], 0).count, block(n[2], grid[1], 0).count)});
    if (largest_of_all > static_cast<std::size_t>(std::numeric_limits<int>::max()))
        throw mpi_support::UsageError(
            "a rank's part has more than 2^31-1 points, which MPI's counts cannot hold: use more ranks or a "
            "smaller --n");

    const int periodic[2] = {0, 0};
    MPI_Comm cartesian = MPI_COMM_NULL;
    MPI_Cart_create(comm, 2, grid_.data(), periodic, 0, &cartesian);
    const int keep_columns[2] = {0, 1}, keep_rows[2] = {1, 0};
    MPI_Cart_sub(cartesian, keep_columns, &row_);
    MPI_Cart_sub(cartesian, keep_rows, &column_);
    MPI_Comm_free(&cartesian);
    MPI_Comm_rank(column_, &p_);
    MPI_Comm_rank(row_, &q_);

    const int xs = x().count, zs = z().count;
    z_to_y_ = make_exchange(row_, counts_of(n_[2], grid_[1], xs * y_of_row().count),
                            counts_of(n_[1], grid_[1], xs * zs));
    y_to_x_ = make_exchange(column_, counts_of(n_[1], grid_[0], xs * zs),
                            counts_of(n_[0], grid_[0], y_of_column().count * zs));
}

Decomposition::~Decomposition() {
    MPI_Comm_free(&row_);
    MPI_Comm_free(&column_);
}

std::size_t Decomposition::field_size() const {
    return volume(x().count, y_of_row().count, n_[2]);
}

std::size_t Decomposition::spectrum_size() const {
    return volume(y_of_column().count, n_[0], z().count);
}

std::size_t Decomposition::largest_pencil() const {
    return std::max({field_size(), volume(x().count, n_[1], z().count), spectrum_size()});
}

}  // namespace fft3d
