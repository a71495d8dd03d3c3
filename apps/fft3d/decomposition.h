// The 2-D pencil decomposition of a 3-D grid over P x Q ranks, and the two exchanges between its pencils.
//
// Rank (p, q) has, with x split into P parts and the other dimensions as named,
//   z pencils  [x in Xp][y in Yq][all z]     the physical field
//   y pencils  [x in Xp][all y][z in Zq]     between the exchanges
//   x pencils  [y in Yp][all x][z in Zq]     the spectrum
// Exchange A turns z pencils into y pencils among the Q ranks of equal p (the row). Exchange B turns y
// pencils into x pencils among the P ranks of equal q (the column). Sizes need not divide evenly: the first
// blocks are one longer. Owns its two communicators, which must be freed before MPI_Finalize.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <vector>

namespace fft3d {

struct Range {
    int first = 0;
    int count = 0;
};

// Returns block `index` of the `parts` blocks of 0..n-1.
Range block(int n, int parts, int index);

// One direction of an MPI_Alltoallv; counts and displacements are in complex numbers.
struct Exchange {
    MPI_Comm comm = MPI_COMM_NULL;
    std::vector<int> send_counts, send_offsets, receive_counts, receive_offsets;

    int parts() const { return static_cast<int>(send_counts.size()); }
    Exchange reversed() const;
};

class Decomposition {
  public:
    // Collective over `comm`, whose size is rows * columns. Throws UsageError if a pencil exceeds MPI's
    // counts.
    Decomposition(MPI_Comm comm, std::array<int, 3> n, std::array<int, 2> grid);
    ~Decomposition();
    Decomposition(const Decomposition&) = delete;
    Decomposition& operator=(const Decomposition&) = delete;

    const std::array<int, 3>& n() const { return n_; }
    const std::array<int, 2>& grid() const { return grid_; }
    double points() const { return static_cast<double>(n_[0]) * n_[1] * n_[2]; }

    Range x() const { return block(n_[0], grid_[0], p_); }            // in z and y pencils
    Range y_of_row() const { return block(n_[1], grid_[1], q_); }     // in z pencils
    Range y_of_column() const { return block(n_[1], grid_[0], p_); }  // in x pencils
    Range z() const { return block(n_[2], grid_[1], q_); }            // in y and x pencils

    const Exchange& z_to_y() const { return z_to_y_; }
    const Exchange& y_to_x() const { return y_to_x_; }

    // Complex numbers in this rank's part of the field.
    std::size_t field_size() const;
    std::size_t spectrum_size() const;
    std::size_t largest_pencil() const;

  private:
    std::array<int, 3> n_;
    std::array<int, 2> grid_;
    int p_ = 0, q_ = 0;
    MPI_Comm row_ = MPI_COMM_NULL, column_ = MPI_COMM_NULL;
    Exchange z_to_y_, y_to_x_;
};

}  // namespace fft3d
