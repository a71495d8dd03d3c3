#include "minimd/offpath/kernel_lists.h"

#include <algorithm>
#include <limits>

namespace minimd {

bool KernelLists::fill(const std::vector<PairLists>& from) {
    if (!kept()) return false;
    std::size_t rows = 0, blocks = 0;
    for (const PairLists& each : from) {
        rows += each.interior.rows.size() + each.boundary.rows.size();
        blocks += each.interior.blocks.size() + each.boundary.blocks.size();
    }
    row_bytes_ = rows * sizeof(PairRow);
    block_bytes_ = blocks * sizeof(std::int32_t);
    if (from.size() > runtime::most_ranges || blocks > std::numeric_limits<std::int32_t>::max() ||
        !rows_.reserve(row_bytes_) || !blocks_.reserve(block_bytes_))
        return false;
    auto* to_row = static_cast<PairRow*>(rows_.data());
    auto* to_block = static_cast<std::int32_t*>(blocks_.data());
    std::int32_t blocks_before = 0;
    all_rows_ = 0;
    const auto append = [&](const PairList& list) {
        for (PairRow row : list.rows) {
            row.begin += blocks_before;
            row.end += blocks_before;
            *to_row++ = row;
        }
        to_block = std::copy(list.blocks.begin(), list.blocks.end(), to_block);
        all_rows_ += static_cast<std::int32_t>(list.rows.size());
        blocks_before += static_cast<std::int32_t>(list.blocks.size());
    };
    ends_.clear();
    for (const PairLists& each : from) {
        append(each.interior);
        ends_.push_back(all_rows_);
    }
    for (const PairLists& each : from)
        append(each.boundary);
    return true;
}

std::int32_t KernelLists::first_slot(std::span<const runtime::RowRange> ranges, Layout layout,
                                     std::int32_t own) const {
    const auto* const rows = static_cast<const PairRow*>(rows_.data());
    std::int32_t first = own;
    for (const runtime::RowRange& range : ranges)
        if (range.first < range.end) first = std::min(first, rows[range.first].cluster * cluster_size);
    return first / layout.lanes * layout.lanes;
}

bool KernelLists::send() {
    const offpath_kernel_buffer_t buffers[] = {row_buffer(), block_buffer()};
    return runner_.start(Kernel::lists, nullptr, 0, buffers, keeping_);
}

bool KernelLists::reserve_as(const KernelLists& other) {
    return rows_.reserve(other.row_bytes_) && blocks_.reserve(other.block_bytes_);
}

}  // namespace minimd
