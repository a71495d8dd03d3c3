// Random atoms in slots, some slots without an atom, and the pairs between the atoms.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

#include "minimd/cells/pair_list.h"
#include "minimd/kernels/kernels.h"

namespace minimd {

// Returns the numbers of lanes among 2, 4, 8 and 16 for which kernels exist.
template <typename Real>
std::vector<int> usable_lanes() {
    std::vector<int> usable;
    for (const int lanes : {2, 4, 8, 16}) {
        try {
            kernels<Real>(lanes);
            usable.push_back(lanes);
        } catch (const std::invalid_argument&) {
            // This processor, or the precision, has no such kernels.
        }
    }
    return usable;
}

// Atoms are at least 0.8 apart, in a cube of `side`.
template <typename Real>
struct Slots {
    Layout layout;
    AlignedVector<Real> x;
    std::vector<std::int32_t> atoms;
    std::int32_t count = 0;

    Slots(int lanes, int wanted, double side) {
        layout.lanes = lanes;
        std::mt19937_64 random(7);
        std::uniform_real_distribution<double> place(0.0, side), lot(0.0, 1.0);
        std::vector<std::array<double, 3>> points;
        for (int tries = 0; tries < 100 * wanted && static_cast<int>(points.size()) < wanted; ++tries) {
            const std::array<double, 3> p{place(random), place(random), place(random)};
            bool free = true;
            for (const auto& q : points)
                free = free && std::hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]) > 0.8;
            if (free) points.push_back(p);
        }
        count = layout.padded(static_cast<std::int32_t>(points.size() * 5 / 4));
        x.resize(3 * static_cast<std::size_t>(count));
        std::size_t next = 0;
        for (std::int32_t slot = 0; slot < count; ++slot) {
            Real* at = x.data() + layout.address(slot);
            const bool filled =
                next < points.size() &&
                (lot(random) < 0.8 || points.size() - next >= static_cast<std::size_t>(count - slot));
            for (std::size_t d = 0; d < 3; ++d)
                at[d * static_cast<std::size_t>(lanes)] =
                    static_cast<Real>(filled ? points[next][d] : filler_position(slot, static_cast<int>(d)));
            if (!filled) continue;
            atoms.push_back(slot);
            ++next;
        }
    }

    // Lists every block for every cluster, the cluster's own block first. A half list has only later blocks.
    PairList all_pairs(bool half) const {
        PairList list;
        const std::int32_t lanes = layout.lanes;
        for (std::int32_t cluster = 0; cluster < count / cluster_size; ++cluster) {
            const std::int32_t own = cluster * cluster_size / lanes;
            const std::int32_t own_end = (cluster * cluster_size + cluster_size - 1) / lanes + 1;
            PairRow row;
            row.cluster = cluster;
            row.begin = static_cast<std::int32_t>(list.blocks.size());
            row.masked = own_end - own;
            for (std::int32_t block = own; block < own_end; ++block)
                list.blocks.push_back(block);
            for (std::int32_t block = 0; block < count / lanes; ++block)
                if (block >= own_end || (!half && block < own)) list.blocks.push_back(block);
            row.end = static_cast<std::int32_t>(list.blocks.size());
            list.rows.push_back(row);
        }
        return list;
    }

    // Calls call(i, j, r2) for slots i < j within `range`.
    template <typename Call>
    void for_each_pair(double range, Call&& call) const {
        for (std::size_t a = 0; a < atoms.size(); ++a)
            for (std::size_t b = a + 1; b < atoms.size(); ++b) {
                double r2 = 0;
                for (std::size_t d = 0; d < 3; ++d) {
                    const double delta = apart(atoms[a], atoms[b], d);
                    r2 += delta * delta;
                }
                if (r2 < range * range) call(atoms[a], atoms[b], r2);
            }
    }

    // Adds `over_r` times the distance to the force on i, and subtracts it from the force on j.
    void push(std::vector<double>& f, std::int32_t i, std::int32_t j, double over_r) const {
        for (std::size_t d = 0; d < 3; ++d) {
            const std::size_t at = d * static_cast<std::size_t>(layout.lanes);
            f[layout.address(i) + at] += over_r * apart(i, j, d);
            f[layout.address(j) + at] -= over_r * apart(i, j, d);
        }
    }

    double apart(std::int32_t i, std::int32_t j, std::size_t d) const {
        const std::size_t at = d * static_cast<std::size_t>(layout.lanes);
        return static_cast<double>(x[layout.address(i) + at]) -
               static_cast<double>(x[layout.address(j) + at]);
    }
};

// Expects equality within `tolerance` of the largest expected value.
template <typename Reals>
void expect_near(const Reals& found, const std::vector<double>& expected, double tolerance) {
    double largest = 0;
    for (const double value : expected)
        largest = std::max(largest, std::abs(value));
    ASSERT_GT(largest, 0.0);
    for (std::size_t i = 0; i < expected.size(); ++i)
        ASSERT_NEAR(static_cast<double>(found[i]), expected[i], tolerance * largest) << "at " << i;
}

}  // namespace minimd
