#include "minimd/cells/columns.h"

#include <algorithm>
#include <cmath>

namespace minimd {

template <typename Real>
void Columns<Real>::set_up(std::array<double, 2> lo, std::array<double, 2> hi, double side,
                           std::array<int, 2> counts) {
    lo_ = lo;
    for (int d = 0; d < 2; ++d) {
        const double length = hi[d] - lo[d];
        counts_[d] = counts[d] > 0 ? counts[d] : std::max(1, static_cast<int>(std::lround(length / side)));
        width_[d] = length / counts_[d];
        inverse_[d] = static_cast<Real>(1.0 / width_[d]);
    }
}

template <typename Real>
std::int32_t Columns<Real>::sort(Layout layout, std::int32_t first_slot, std::span<const Real> x,
                                 std::span<const Real> y, std::span<const Real> z,
                                 std::vector<std::int32_t>& order) {
    const std::size_t columns = static_cast<std::size_t>(counts_[0]) * static_cast<std::size_t>(counts_[1]);
    fill_.assign(columns + 1, 0);
    column_of_.resize(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        column_of_[i] = column(index(0, x[i]), index(1, y[i]));
        ++fill_[static_cast<std::size_t>(column_of_[i]) + 1];
    }
    for (std::size_t c = 0; c < columns; ++c)
        fill_[c + 1] += fill_[c];
    entries_.resize(x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
        entries_[static_cast<std::size_t>(fill_[static_cast<std::size_t>(column_of_[i])]++)] = {
            z[i], static_cast<std::int32_t>(i)};

    // fill_[c] is now the end of column c. Since the last sort, atoms have hardly changed their order.
    first_slot_.resize(columns + 1);
    order.clear();
    std::int32_t slot = first_slot, begin = 0;
    for (std::size_t c = 0; c < columns; ++c) {
        const std::int32_t end = fill_[c];
        Entry* const column = entries_.data() + begin;
        const std::int32_t n = end - begin;
        std::int64_t moves = 0;
        for (std::int32_t i = 1; i < n; ++i) {
            const Entry entry = column[i];
            std::int32_t to = i;
            for (; to > 0 && column[to - 1].z > entry.z; --to)
                column[to] = column[to - 1];
            column[to] = entry;
            moves += i - to;
            if (moves > 16 * static_cast<std::int64_t>(n)) {
                std::sort(column, column + n, [](const Entry& a, const Entry& b) { return a.z < b.z; });
                break;
            }
        }
        first_slot_[c] = slot;
        for (std::int32_t i = 0; i < n; ++i)
            order.push_back(column[i].atom);
        slot += layout.padded(n);
        order.resize(static_cast<std::size_t>(slot - first_slot), -1);
        begin = end;
    }
    first_slot_[columns] = slot;
    return slot;
}

template class Columns<float>;
template class Columns<double>;

}  // namespace minimd
