#include "minimd/cells/pair_list.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace minimd {

namespace {

constexpr float far = std::numeric_limits<float>::max();
constexpr std::size_t spare = 16;  // a kernel may read or write this far beyond the last block

constexpr bool share_a_dimension(std::size_t a, std::size_t b) {
    return (a & b) != 0;
}

// Returns a float that is certainly not above, or not below, `value`.
template <typename Real>
float rounded_down(Real value) {
    const auto f = static_cast<float>(value);
    return sizeof(Real) == 4 ? f : f - std::abs(f) * 1.2e-7F;
}
template <typename Real>
float rounded_up(Real value) {
    const auto f = static_cast<float>(value);
    return sizeof(Real) == 4 ? f : f + std::abs(f) * 1.2e-7F;
}

Box nothing() {
    return {{far, far, far}, {-far, -far, -far}};
}

void widen(Box& box, const Box& by) {
    for (std::size_t d = 0; d < 3; ++d) {
        box.lo[d] = std::min(box.lo[d], by.lo[d]);
        box.hi[d] = std::max(box.hi[d], by.hi[d]);
    }
}

// Returns a task's share of a zone's columns: the first one, and the one after the last.
template <typename Real>
std::pair<int, int> share_of(const Columns<Real>& columns, int part, int parts) {
    const std::int64_t count = static_cast<std::int64_t>(columns.count(0)) * columns.count(1);
    return {static_cast<int>(count * part / parts), static_cast<int>(count * (part + 1) / parts)};
}

}  // namespace

PairRows rows_of(const PairLists& lists, PairPart part) {
    if (part == PairPart::boundary) return lists.boundary.view();
    const PairList& interior = lists.interior;
    if (part == PairPart::interior) return interior.view();
    const auto half = static_cast<std::int32_t>(interior.blocks.size() / 2);
    const auto middle = std::lower_bound(interior.rows.begin(), interior.rows.end(), half,
                                         [](const PairRow& row, std::int32_t n) { return row.begin < n; });
    const auto rows = static_cast<std::size_t>(middle - interior.rows.begin());
    return part == PairPart::first_interior ? interior.view(0, rows)
                                            : interior.view(rows, interior.rows.size() - rows);
}

template <typename Real>
void PairSearch<Real>::enclose_own(const Particles<Real>& particles) {
    enclose(particles, 0, particles.local_slots);
}

template <typename Real>
void PairSearch<Real>::enclose_ghosts(const Particles<Real>& particles) {
    enclose(particles, particles.local_slots, particles.slots);
}

template <typename Real>
void PairSearch<Real>::enclose(const Particles<Real>& particles, std::int32_t from_slot,
                               std::int32_t end_slot) {
    const Layout layout = particles.layout;
    const auto lanes = static_cast<std::size_t>(layout.lanes);
    // The number of slots that are neighbours both in a block and in a cluster.
    const auto run = std::min<std::size_t>(lanes, cluster_size);
    const auto slots = static_cast<std::size_t>(end_slot);
    const std::size_t blocks = slots / lanes;
    clusters_.resize(slots / cluster_size);
    for (std::size_t d = 0; d < 3; ++d) {
        block_lo_[d].resize(blocks + spare);
        block_hi_[d].resize(blocks + spare);
        std::fill_n(block_lo_[d].begin() + static_cast<std::ptrdiff_t>(blocks), spare, far);
        std::fill_n(block_hi_[d].begin() + static_cast<std::ptrdiff_t>(blocks), spare, far);
    }
    if constexpr (sizeof(Real) != sizeof(float)) {
        rounded_x_.resize(3 * slots);
        const auto first = 3 * static_cast<std::size_t>(from_slot);
        std::transform(particles.x.begin() + static_cast<std::ptrdiff_t>(first),
                       particles.x.begin() + static_cast<std::ptrdiff_t>(3 * slots),
                       rounded_x_.begin() + static_cast<std::ptrdiff_t>(first),
                       [](Real x) { return static_cast<float>(x); });
    }
    if (from_slot == 0) farthest_ = 0.0F;
    Box cluster = nothing(), block = nothing();
    for (auto slot = static_cast<std::size_t>(from_slot); slot < slots; slot += run) {
        const Real* x = particles.x.data() + layout.address(static_cast<std::int32_t>(slot));
        Box box = nothing();
        for (std::size_t i = 0; i < run; ++i) {
            if (x[i] <= static_cast<Real>(filler_edge)) break;  // fillers come last in their column
            for (std::size_t d = 0; d < 3; ++d) {
                box.lo[d] = std::min(box.lo[d], rounded_down(x[d * lanes + i]));
                box.hi[d] = std::max(box.hi[d], rounded_up(x[d * lanes + i]));
            }
        }
        widen(cluster, box);
        widen(block, box);
        if ((slot + run) % cluster_size == 0) {
            clusters_[slot / cluster_size] = cluster;
            cluster = nothing();
        }
        if ((slot + run) % lanes == 0) {
            for (std::size_t d = 0; d < 3; ++d) {
                block_lo_[d][slot / lanes] = block.lo[d];
                // A block that has only fillers is placed as far up as possible, so that the order is kept.
                block_hi_[d][slot / lanes] = block.lo[0] > block.hi[0] ? far : block.hi[d];
                if (block.lo[0] <= block.hi[0]) farthest_ = std::max({farthest_, -block.lo[d], block.hi[d]});
            }
            block = nothing();
        }
    }
}

template <typename Real>
void PairSearch<Real>::open_windows(const Zone<Real>& other, const Box& column, float range,
                                    std::int32_t after_block, Windows& windows) const {
    const Columns<Real>& columns = other.columns;
    const std::int32_t lanes = kernels_.lanes;
    const int x_first = columns.index(0, static_cast<Real>(column.lo[0] - range));
    const int x_last = columns.index(0, static_cast<Real>(column.hi[0] + range));
    const int y_first = columns.index(1, static_cast<Real>(column.lo[1] - range));
    const int y_last = columns.index(1, static_cast<Real>(column.hi[1] + range));
    for (int cx = x_first; cx <= x_last; ++cx) {
        const float x_lo = rounded_down(columns.edge(0, cx)), x_hi = rounded_up(columns.edge(0, cx + 1));
        const float dx = std::max({0.0F, x_lo - column.hi[0], column.lo[0] - x_hi});
        for (int cy = y_first; cy <= y_last; ++cy) {
            const int number = columns.column(cx, cy);
            const std::int32_t begin = std::max(columns.first_slot(number) / lanes, after_block);
            const std::int32_t end = columns.first_slot(number + 1) / lanes;
            if (begin >= end) continue;
            const float y_lo = rounded_down(columns.edge(1, cy)), y_hi = rounded_up(columns.edge(1, cy + 1));
            const float dy = std::max({0.0F, y_lo - column.hi[1], column.lo[1] - y_hi});
            const float left = range * range - dx * dx - dy * dy;
            if (left > 0) windows.add({x_lo, x_hi}, {y_lo, y_hi}, std::sqrt(left), begin, end);
        }
    }
}

template <typename Real>
void PairSearch<Real>::find_between(const Particles<Real>& particles, const Zone<Real>& zone,
                                    int first_column, int end_column,
                                    std::span<const Zone<Real>* const> others, bool own, bool later_only,
                                    float range, PairList& list) const {
    const std::int32_t lanes = kernels_.lanes;
    BlockBoxes boxes{};
    if constexpr (sizeof(Real) == sizeof(float)) {
        boxes.x = particles.x.data();
    } else {
        boxes.x = rounded_x_.data();
        // Two positions are rounded, each by up to 2^-24 of its size in each dimension. Results computed from
        // them are rounded too.
        range += (farthest_ + range) * 0x1p-21F;
    }
    for (std::size_t d = 0; d < 3; ++d) {
        boxes.lo[d] = block_lo_[d].data();
        boxes.hi[d] = block_hi_[d].data();
    }
    Windows windows;
    for (int column = first_column; column < end_column; ++column) {
        const std::int32_t first = zone.columns.first_slot(column) / cluster_size;
        const std::int32_t end = zone.columns.first_slot(column + 1) / cluster_size;
        if (first == end) continue;
        Box around = nothing();
        for (std::int32_t cluster = first; cluster < end; ++cluster)
            widen(around, clusters_[static_cast<std::size_t>(cluster)]);
        windows.clear();
        const std::int32_t after = later_only ? zone.columns.first_slot(column) / lanes : 0;
        for (const Zone<Real>* other : others)
            open_windows(*other, around, range, after, windows);
        // The window of the column itself shrinks from below as clusters are done.
        std::int32_t* own_next = nullptr;
        std::size_t room = spare + 4;
        for (std::size_t window = 0; window < windows.count; ++window) {
            room += static_cast<std::size_t>(windows.end[window] - windows.next[window]);
            if (later_only && windows.next[window] == after) own_next = &windows.next[window];
        }
        for (std::int32_t cluster = first; cluster < end; ++cluster) {
            const Box& box = clusters_[static_cast<std::size_t>(cluster)];
            if (box.lo[0] > box.hi[0]) continue;  // it has only fillers
            const std::int32_t own_block = cluster * cluster_size / lanes;
            const std::int32_t own_end = (cluster * cluster_size + cluster_size - 1) / lanes + 1;
            const std::size_t begin = list.blocks.size();
            std::size_t at = begin;
            list.blocks.resize(begin + room);
            // The cluster's own blocks come first, because only they have a mask.
            if (own)
                for (std::int32_t block = own_block; block < own_end; ++block)
                    list.blocks[at++] = block;
            const auto masked = static_cast<std::int32_t>(at - begin);
            if (own_next != nullptr) *own_next = std::max(*own_next, own_end);
            std::size_t found = kernels_.search(boxes, box, cluster, windows, range, list.blocks.data() + at);
            if (own && !later_only) {
                std::int32_t* const from = list.blocks.data() + at;
                found = static_cast<std::size_t>(
                    std::remove_if(from, from + found,
                                   [&](std::int32_t b) { return b >= own_block && b < own_end; }) -
                    from);
            }
            at += found;
            list.blocks.resize(at);
            if (at > begin)
                list.rows.push_back(
                    {cluster, static_cast<std::int32_t>(begin), static_cast<std::int32_t>(at), masked});
        }
    }
}

template <typename Real>
void PairSearch<Real>::find_interior(const Particles<Real>& particles, const Zone<Real>& own,
                                     const Task& task, PairList& interior) const {
    interior.clear();
    const Zone<Real>* const self = &own;
    const auto [first, end] = share_of(own.columns, task.part, task.parts);
    find_between(particles, own, first, end, {&self, 1}, true, task.shell != Shell::full,
                 static_cast<float>(task.range), interior);
}

template <typename Real>
void PairSearch<Real>::find_boundary(const Particles<Real>& particles, const std::vector<Zone<Real>>& zones,
                                     const Task& task, PairList& boundary) const {
    boundary.clear();
    const std::size_t from_zones = task.shell == Shell::eighth ? zones.size() : 1;
    for (std::size_t a = 0; a < from_zones; ++a) {
        std::vector<const Zone<Real>*> others;
        for (std::size_t b = a + 1; b < zones.size(); ++b)
            if (zones[b].first_slot < zones[b].end_slot && !share_a_dimension(a, b))
                others.push_back(&zones[b]);
        if (others.empty()) continue;
        const auto [first, end] = share_of(zones[a].columns, task.part, task.parts);
        find_between(particles, zones[a], first, end, others, false, false, static_cast<float>(task.range),
                     boundary);
    }
}

template class PairSearch<float>;
template class PairSearch<double>;

}  // namespace minimd
