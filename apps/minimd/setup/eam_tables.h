// The embedded-atom potential as piecewise cubic polynomials, which kernels load row by row.
//
// The energy of an atom is F(rho) + 1/2 sum z2(r) / r over its neighbours, where rho is the sum of the
// neighbours' densities at its place (Daw and Baskes, Physical Review B 29, 1984). Tables are immutable once
// made, so any thread may use them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "minimd/base/layout.h"

namespace minimd {

// Rows of 8 doubles, each row in a cache line of its own. Row k is for arguments from k to k + 1 times the
// spacing. With p, from 0 to 1, the part of the argument (in spacings) beyond k:
//   slope  (row[0] p + row[1]) p + row[2]
//   value ((row[3] p + row[4]) p + row[5]) p + row[6]
// row[7] is 0. Arguments beyond the table get the value at the end of the last interval: k is at most rows -
// 2, and p at most 1.
class Spline {
  public:
    static constexpr std::size_t row_size = 8;

    Spline() = default;
    // Interpolates `values`, of which there are at least 5. The first is at argument 0, and they are
    // `spacing` apart.
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
    std::string file;  // the file that the tables were read from
    int atomic_number = 0;
    double mass = 1.0;
    double cutoff = 0.0;

    Spline frho;  // F(rho): embedding energy as a function of the density, eV
    Spline rhor;  // density as a function of the distance
    Spline z2r;   // pair energy times distance, as a function of the distance, eV * angstrom
};

// Returns the chemical symbol of an element, for instance "Cu" for 29. Returns "X" if there is no such
// element.
std::string element_symbol(int atomic_number);

}  // namespace minimd
