#include "schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace offpath::schedule {

Schedule::Schedule(std::uint32_t rank, std::uint32_t team_size, std::vector<Slot> slots, std::vector<Op> ops,
                   std::vector<std::pair<OpId, OpId>> edges, std::vector<KernelCall> calls)
    : rank_(rank),
      team_size_(team_size),
      slots_(std::move(slots)),
      ops_(std::move(ops)),
      calls_(std::move(calls)) {
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());

    first_successor_.assign(ops_.size() + 1, 0);
    dependency_counts_.assign(ops_.size(), 0);
    successors_.reserve(edges.size());
    for (auto [before, after] : edges) {
        if (before >= ops_.size() || after >= ops_.size())
            throw std::out_of_range(fmt::format("dependency of op {} on op {} in a schedule of {} ops", after,
                                                before, ops_.size()));
        successors_.push_back(after);
        ++first_successor_[before + 1];
        ++dependency_counts_[after];
    }
    for (std::size_t op = 0; op < ops_.size(); ++op)
        first_successor_[op + 1] += first_successor_[op];
}

OpId Schedule::shared_copy() const {
    OpId found = npos;
    for (OpId op = 0; op < ops_.size(); ++op) {
        if (ops_[op].kind != OpKind::copy) continue;
        if (found != npos) return npos;
        found = op;
    }
    if (found == npos || dependency_counts_[found] > 0 || !successors(found).empty()) return npos;
    const Op& copy = ops_[found];
    const bool users = slots_[copy.src.slot].kind == SlotKind::user &&
                       slots_[copy.dst.slot].kind == SlotKind::user && copy.src.slot != copy.dst.slot;
    return users ? found : npos;
}

std::vector<bool> Schedule::slots_used_whole() const {
    struct Part {
        std::uint32_t slot;
        std::uint64_t begin, end;
        auto operator<=>(const Part&) const = default;
    };
    std::vector<Part> parts;
    const auto add = [&](const BufferRef& place, std::uint64_t bytes) {
        if (bytes > 0) parts.push_back({place.slot, place.offset, place.offset + bytes});
    };
    for (const Op& op : ops_) {
        const bool moves = op.kind == OpKind::copy || op.kind == OpKind::reduce;
        if (moves || op.kind == OpKind::send) add(op.src, op.bytes);
        if (moves || op.kind == OpKind::recv) add(op.dst, op.bytes);
    }
    std::ranges::sort(parts);
    std::vector<std::uint64_t> used(slots_.size());  // without a gap, from the beginning on
    for (const Part& part : parts)
        if (part.begin <= used[part.slot]) used[part.slot] = std::max(used[part.slot], part.end);
    std::vector<bool> whole(slots_.size());
    for (std::size_t slot = 0; slot < slots_.size(); ++slot)
        whole[slot] = used[slot] >= slots_[slot].bytes;
    return whole;
}

std::uint64_t Schedule::bytes_sent() const {
    std::uint64_t total = 0;
    for (const Op& op : ops_)
        if (op.kind == OpKind::send && op.peer != rank_) total += op.bytes;
    return total;
}

}  // namespace offpath::schedule
