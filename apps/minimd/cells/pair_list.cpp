#include "minimd/cells/pair_list.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace minimd {

namespace {

constexpr bool share_a_dimension(unsigned a, unsigned b) {
    return (a & b) != 0;
}

}  // namespace

template <typename Real>
void PairSearch<Real>::enclose(const Particles<Real>& particles) {
    const Layout layout = particles.layout;
    const auto lanes = static_cast<std::size_t>(layout.lanes);
    const int run = std::min(layout.lanes, cluster_size);  // slots that are neighbours in a block and in a cluster
    constexpr Real far = std::numeric_limits<Real>::max();
    const auto slots = static_cast<std::size_t>(particles.slots);
    const std::size_t runs = slots / static_cast<std::size_t>(run);
    const Box nothing{{far, far, far}, {-far, -far, -far}};
    clusters_.assign(slots / cluster_size, nothing);
    blocks_.assign(slots / lanes, nothing);
    const auto widen = [](Box& box, const Box& by) {
        for (std::size_t d = 0; d < 3; ++d) {
            box.lo[d] = std::min(box.lo[d], by.lo[d]);
            box.hi[d] = std::max(box.hi[d], by.hi[d]);
        }
    };
    for (std::size_t r = 0; r < runs; ++r) {
        const std::size_t slot = r * static_cast<std::size_t>(run);
        const Real* x = particles.x.data() + layout.address(static_cast<std::int32_t>(slot));
        Box box = nothing;
        for (int i = 0; i < run; ++i) {
            if (x[i] <= static_cast<Real>(filler_position(0))) continue;
            for (std::size_t d = 0; d < 3; ++d) {
                box.lo[d] = std::min(box.lo[d], x[d * lanes + static_cast<std::size_t>(i)]);
                box.hi[d] = std::max(box.hi[d], x[d * lanes + static_cast<std::size_t>(i)]);
            }
        }
        widen(clusters_[slot / cluster_size], box);
        widen(blocks_[slot / lanes], box);
    }
}

template <typename Real>
void PairSearch<Real>::find_row(const Zone<Real>& zone, const Box& box, std::int32_t cluster, Which which, bool own,
                                Real range, std::vector<std::int32_t>& found, std::int32_t& masked) const {
    const Columns<Real>& columns = zone.columns;
    const std::int32_t lanes = kernels_.lanes;
    const Real range2 = range * range;
    const int x_first = columns.index(0, box.lo[0] - range), x_last = columns.index(0, box.hi[0] + range);
    const int y_first = columns.index(1, box.lo[1] - range), y_last = columns.index(1, box.hi[1] + range);
    const std::int32_t own_block = cluster * cluster_size / lanes;
    const std::int32_t own_end = (cluster * cluster_size + cluster_size - 1) / lanes + 1;
    // Its own blocks come first: they are the ones with a mask.
    masked = 0;
    if (own)
        for (std::int32_t block = own_block; block < own_end; ++block, ++masked)
            found.push_back(block);

    for (int cx = x_first; cx <= x_last; ++cx) {
        const Real x_lo = static_cast<Real>(columns.edge(0, cx)), x_hi = static_cast<Real>(columns.edge(0, cx + 1));
        const Real dx = std::max({Real{0}, x_lo - box.hi[0], box.lo[0] - x_hi});
        for (int cy = y_first; cy <= y_last; ++cy) {
            const int column = columns.column(cx, cy);
            if (which == Which::later && columns.first_slot(column + 1) <= cluster * cluster_size) continue;
            const Real y_lo = static_cast<Real>(columns.edge(1, cy)), y_hi = static_cast<Real>(columns.edge(1, cy + 1));
            const Real dy = std::max({Real{0}, y_lo - box.hi[1], box.lo[1] - y_hi});
            const Real left = range2 - dx * dx - dy * dy;
            if (left < 0) continue;
            const Real reach = std::sqrt(left);
            const Real z_lo = box.lo[2] - reach, z_hi = box.hi[2] + reach;
            std::int32_t block = columns.first_slot(column) / lanes;
            const std::int32_t end = columns.first_slot(column + 1) / lanes;
            if (which == Which::later && block < own_end) block = own_end;
            // The first block that reaches up to z_lo; the blocks of a column are in order of z.
            std::int32_t count = end - block;
            while (count > 0) {
                const std::int32_t half = count / 2;
                if (blocks_[static_cast<std::size_t>(block + half)].hi[2] < z_lo &&
                    blocks_[static_cast<std::size_t>(block + half)].hi[2] >= blocks_[static_cast<std::size_t>(block + half)].lo[2]) {
                    block += half + 1;
                    count -= half + 1;
                } else {
                    count = half;
                }
            }
            for (; block < end; ++block) {
                const Box& other = blocks_[static_cast<std::size_t>(block)];
                if (other.lo[2] > z_hi) break;
                if (own && block >= own_block && block < own_end) continue;
                Real distance2 = 0;
                for (std::size_t d = 0; d < 3; ++d) {
                    const Real gap = std::max({Real{0}, other.lo[d] - box.hi[d], box.lo[d] - other.hi[d]});
                    distance2 += gap * gap;
                }
                if (distance2 < range2) found.push_back(block);
            }
        }
    }
}

template <typename Real>
void PairSearch<Real>::find(const Particles<Real>& particles, const std::vector<Zone<Real>>& zones, Shell shell,
                            double range, int part, int parts, PairLists& lists) const {
    lists.interior.clear();
    lists.boundary.clear();
    const auto reach = static_cast<Real>(range);
    std::vector<std::int32_t> found;
    // Appends the row of `cluster` with `found`, of which the first `masked` stay whatever they are.
    const auto keep = [&](PairList& list, std::int32_t cluster, std::int32_t masked) {
        const std::size_t begin = list.blocks.size();
        list.blocks.resize(begin + found.size());
        std::copy_n(found.begin(), masked, list.blocks.begin() + static_cast<std::ptrdiff_t>(begin));
        const std::size_t kept =
            kernels_.prune(particles.x.data(), cluster, found.data() + masked,
                           found.size() - static_cast<std::size_t>(masked), reach,
                           list.blocks.data() + begin + static_cast<std::size_t>(masked));
        list.blocks.resize(begin + static_cast<std::size_t>(masked) + kept);
        if (masked + kept > 0)
            list.rows.push_back({cluster, static_cast<std::int32_t>(begin),
                                 static_cast<std::int32_t>(list.blocks.size()), masked});
    };

    for (std::size_t a = 0; a < zones.size(); ++a) {
        if (a > 0 && shell != Shell::eighth) break;
        const std::int32_t first = zones[a].first_slot / cluster_size, end = zones[a].end_slot / cluster_size;
        const auto from = static_cast<std::int32_t>(first + static_cast<std::int64_t>(end - first) * part / parts);
        const auto to = static_cast<std::int32_t>(first + static_cast<std::int64_t>(end - first) * (part + 1) / parts);
        for (std::int32_t cluster = from; cluster < to; ++cluster) {
            const Box& box = clusters_[static_cast<std::size_t>(cluster)];
            if (box.lo[0] > box.hi[0]) continue;  // fillers only
            std::int32_t masked = 0;
            if (a == 0) {
                found.clear();
                find_row(zones[0], box, cluster, shell == Shell::full ? Which::all : Which::later, true, reach, found, masked);
                keep(lists.interior, cluster, masked);
            }
            found.clear();
            for (std::size_t b = a + 1; b < zones.size(); ++b)
                if (zones[b].first_slot < zones[b].end_slot &&
                    !share_a_dimension(static_cast<unsigned>(a), static_cast<unsigned>(b)))
                    find_row(zones[b], box, cluster, Which::all, false, reach, found, masked);
            if (!found.empty()) keep(lists.boundary, cluster, 0);
        }
    }
}

template class PairSearch<float>;
template class PairSearch<double>;

}  // namespace minimd
