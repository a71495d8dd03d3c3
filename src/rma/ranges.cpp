#include "rma/ranges.h"

#include <algorithm>

namespace offpath::rma {

Status Ranges::add(std::uint64_t begin, std::uint64_t bytes, std::uint64_t region, std::uint64_t address) {
    if (bytes == 0 || begin > UINT64_MAX - bytes) return Status::invalid;
    const auto next = ranges_.lower_bound(begin);
    if (next != ranges_.end() && next->first < begin + bytes) return Status::invalid;
    if (next != ranges_.begin()) {
        const Range& before = std::prev(next)->second;
        if (before.begin + before.bytes > begin) return Status::invalid;
    }
    ranges_.emplace_hint(next, begin, Range{begin, bytes, region, address});
    return Status::ok;
}

Ranges::Range* Ranges::find(std::uint64_t offset, std::uint64_t bytes) {
    auto next = ranges_.upper_bound(offset);
    if (next == ranges_.begin()) return nullptr;
    Range& range = std::prev(next)->second;
    const std::uint64_t inside = offset - range.begin;
    const bool fits = inside <= range.bytes && bytes <= range.bytes - inside;
    return fits && !range.leaving ? &range : nullptr;
}

bool Ranges::cover(std::uint64_t offset, std::uint64_t bytes, std::vector<Range*>& found) {
    const std::size_t before = found.size();
    while (bytes > 0) {
        Range* const range = find(offset, 1);
        if (range == nullptr) {
            found.resize(before);
            return false;
        }
        found.push_back(range);
        const std::uint64_t here = std::min(bytes, range->begin + range->bytes - offset);
        offset += here;
        bytes -= here;
    }
    return true;
}

Ranges::Range* Ranges::at(std::uint64_t begin) {
    const auto found = ranges_.find(begin);
    return found == ranges_.end() ? nullptr : &found->second;
}

}  // namespace offpath::rma
