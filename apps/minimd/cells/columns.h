// Cuts a zone of space into columns along z, and orders the atoms of each column by z.
//
// Consecutive slots of a column are neighbours in space, so clusters and blocks are compact. A position
// outside the rectangle belongs to the column at its edge.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "minimd/base/layout.h"

namespace minimd {

template <typename Real>
class Columns {
  public:
    // Makes columns of about `side` x `side` over [lo, hi) of x and y. That determines their number, which is
    // at least 1. Positive `counts` override it.
    void set_up(std::array<double, 2> lo, std::array<double, 2> hi, double side,
                std::array<int, 2> counts = {0, 0});

    // Assigns atoms at (x[i], y[i], z[i]) to slots from `first_slot` on. order[s - first_slot] becomes the
    // index i of the atom in slot s, or -1 for a filler. Returns the slot after the last one. Both slots are
    // multiples of the layout's granule.
    std::int32_t sort(Layout layout, std::int32_t first_slot, std::span<const Real> x,
                      std::span<const Real> y, std::span<const Real> z, std::vector<std::int32_t>& order);

    int count(int dim) const { return counts_[dim]; }
    std::int32_t first_slot(int column) const { return first_slot_[static_cast<std::size_t>(column)]; }
    int column(int cx, int cy) const { return cx * counts_[1] + cy; }
    double edge(int dim, int at) const { return lo_[dim] + at * width_[dim]; }
    double width(int dim) const { return width_[dim]; }
    // The index in `dim` of the column that holds `value`, or of the nearest column.
    int index(int dim, Real value) const {
        const auto at = static_cast<int>((value - static_cast<Real>(lo_[dim])) * inverse_[dim]);
        return at < 0 ? 0 : at >= counts_[dim] ? counts_[dim] - 1 : at;
    }

  private:
    struct Entry {
        Real z;
        std::int32_t atom;
    };

    std::array<double, 2> lo_{}, width_{};
    std::array<Real, 2> inverse_{};
    std::array<int, 2> counts_{1, 1};
    std::vector<std::int32_t> first_slot_;
    std::vector<std::int32_t> column_of_, fill_;
    std::vector<Entry> entries_;
};

}  // namespace minimd
