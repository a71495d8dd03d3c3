// The linear system and its 1-D block-cyclic distribution: block column j, of `nb` columns, belongs to rank j
// mod ranks.
//
// Entries are uniform in [-0.5, 0.5) and determined by their position, so every rank can generate any column
// again to check the solution. Column n is the right-hand side.
#pragma once

#include <cstdint>
#include <vector>

namespace ring_hpl {

struct Shape {
    int n = 0;   // order of the system
    int nb = 0;  // columns in a block
    int rank = 0;
    int ranks = 1;

    int blocks() const { return (n + nb - 1) / nb; }
    int owner(int block) const { return block % ranks; }
    int first_column(int block) const { return block * nb; }
    int width(int block) const { return block == blocks() - 1 ? n - block * nb : nb; }
    int rows_below(int block) const {
        return n - first_column(block);
    }  // panel height, the diagonal included
    // How many columns of this rank lie in blocks before `block`; its own columns from `block` on start
    // there.
    int local_columns_before(int block) const;
    int local_columns() const { return local_columns_before(blocks()); }
};

void generate_column(const Shape& shape, int column, double* values);

// This rank's columns, contiguous, each of n rows.
std::vector<double> generate_local_matrix(const Shape& shape);
std::vector<double> generate_right_hand_side(const Shape& shape);

// |Ax-b| / (eps (|A| |x| + |b|) n) in the maximum norm, as HPL scales it; below 16 is correct. Collective.
double scaled_residual(const Shape& shape, const std::vector<double>& x);

}  // namespace ring_hpl
