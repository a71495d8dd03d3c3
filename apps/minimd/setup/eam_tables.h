// The embedded-atom potential as piecewise cubic polynomials that kernels load row by row.
//
// The energy of an atom is F(rho) + 1/2 sum z2(r) / r over its neighbours, with rho the sum of their
// densities at its place (Daw and Baskes, Physical Review B 29, 1984). Immutable once made; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "minimd/base/layout.h"

namespace minimd {

// Rows of 8 doubles, each row on a cache line of its own. Row k is for arguments from k to k + 1 times the
// spacing; with p, in 0 to 1, what is beyond k:
//   slope  (row[0] p + row[1]) p + row[2]
//   value ((row[3] p + row[4]) p + row[5]) p + row[6]
// row[7] is 0. Arguments beyond the table take the last interval's end: k at most rows - 2, p at most 1.
class Spline {
  public:
    static constexpr std::size_t row_size = 8;

    Spline() = default;
    // Through `values`, which are `spacing` apart and begin at 0; at least 5.
    Spline(const std::vector<double>& values, double spacing);

    int rows() const { return static_cast<int>(rows_.size() / row_size); }
    const double* data() const { return rows_.data(); }
    double per_spacing() const { return per_spacing_; }

    struct Point {
        double value, slope;
    };
    Point at(double argument) const;

  private:
    AlignedVector<double> rows_;
    double per_spacing_ = 1.0;
};

struct EamTables {
    std::string file;  // where they were found
    int atomic_number = 0;
    double mass = 1.0;
    double cutoff = 0.0;

    Spline frho;  // F(rho): embedding energy by density, eV
    Spline rhor;  // density by distance
    Spline z2r;   // pair energy times distance, by distance, eV * angstrom
};

// "Cu" of 29; "X" of what has no name.
std::string element_symbol(int atomic_number);

}  // namespace minimd
