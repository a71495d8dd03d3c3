// What a host rank asks of us without its own proxy: done at once, or not at all.
#include "rma/direct.h"
#include "engine/onesided/onesided.h"
#include "engine/reductions/atomic_update.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace offpath::engine {

using rma::OpKind;

namespace {

// What the call says of itself is true, and it is one of those that are done at once.
bool sound(const DirectOperation& call) {
    if (!rma::is_kind(call.operation)) return false;
    const auto kind = static_cast<OpKind>(call.operation);
    if (rma::is_lock(kind)) return call.bytes == 0 && call.operands.empty();
    if (call.bytes == 0) return false;
    if (call.operands.size() != rma::operand_bytes(kind, call.reduction, call.bytes)) return false;
    if (call.element > 0) {
        if (rma::is_update(kind) || call.bytes % call.element != 0) return false;
        const std::uint64_t count = call.bytes / call.element;
        if (count > rma::direct::most_elements || call.stride < call.element ||
            call.stride > schedule::max_slot_bytes / count)
            return false;
    }
    if (!rma::is_update(kind)) return true;
    const auto type = static_cast<schedule::DataType>(call.type);
    const bool known = kind == OpKind::compare_swap || call.reduction >= rma::replace ||
                       schedule::defined(type, static_cast<schedule::Reduction>(call.reduction));
    const std::uint64_t element = known ? size_of(type) : 0;
    if (element == 0 || call.bytes % element != 0) return false;
    return kind != OpKind::compare_swap || call.bytes == element;
}

// From the first byte to the last.
std::uint64_t extent(const DirectOperation& call) {
    return call.element == 0 ? call.bytes : (call.bytes / call.element - 1) * call.stride + call.element;
}

void put_elements(const DirectOperation& call, std::byte* place) {
    for (std::uint64_t at = 0; at < call.bytes; at += call.element, place += call.stride)
        store_at_once(place, call.operands.subspan(at, call.element));
}

void get_elements(const DirectOperation& call, const std::byte* place, std::byte* to) {
    for (std::uint64_t at = 0; at < call.bytes; at += call.element, place += call.stride)
        std::memcpy(to + at, place, call.element);
}

// An update has read there and not written yet.
bool is_being_updated(const Window& window, std::uint64_t offset, std::uint64_t bytes) {
    const auto overlaps = [&](const rma::Segment& each) {
        return each.offset < offset + bytes && offset < each.offset + each.bytes;
    };
    for (const Visit* visit = window.visits.first(); visit != nullptr; visit = window.visits.after(*visit)) {
        if (visit->updates && std::any_of(visit->segments.begin(), visit->segments.end(), overlaps))
            return true;
    }
    return false;
}

}  // namespace

Status OneSided::at_once(const DirectOperation& call, std::span<const std::byte>& result) {
    if (!sound(call)) return Status::protocol;
    const auto found =
        windows_.find(std::make_tuple(call.job.high, call.job.low, call.team, call.dest, call.window));
    if (found == windows_.end()) return Status::access;
    Window& window = *found->second;
    if (window.ending || window.session().closing) return Status::peer_lost;
    if (rma::is_lock(static_cast<OpKind>(call.operation))) return lock_at_once(window, call);
    const rma::Ranges::Range* range = window.ranges.find(call.offset, extent(call));
    if (range == nullptr) return window.dynamic ? across_ranges(window, call, result) : Status::access;
    std::byte* const place = window.session().memory->direct({range->region, range->address, range->bytes},
                                                             call.offset - range->begin, extent(call));
    if (place == nullptr) return Status::unsupported;

    // Who sees what comes now, sees what was before.
    std::atomic_thread_fence(std::memory_order_release);
    core_.counters.bytes_received += call.operands.size();
    const auto kind = static_cast<OpKind>(call.operation);
    if (kind == OpKind::put && call.element > 0) {
        put_elements(call, place);
        return Status::ok;
    }
    if (kind == OpKind::put) {
        store_at_once(place, call.operands);
        return Status::ok;
    }
    if (kind == OpKind::get && call.element > 0) {
        direct_result_.resize(call.bytes);
        get_elements(call, place, direct_result_.data());
        result = direct_result_;
    } else if (kind == OpKind::get) {
        result = {place, call.bytes};
    } else {
        if (window.updating && is_being_updated(window, call.offset, call.bytes)) return Status::unsupported;
        const Status status = update(call, place, result);
        if (is_error(status)) return status;
    }
    core_.counters.bytes_sent += result.size();
    return Status::ok;
}

// Of a dynamic window: the call spans several ranges, or its elements lie in several.
Status OneSided::across_ranges(Window& window, const DirectOperation& call,
                               std::span<const std::byte>& result) {
    std::vector<std::span<std::byte>> pieces;
    const std::uint64_t each = call.element == 0 ? call.bytes : call.element;
    for (std::uint64_t at = 0, offset = call.offset; at < call.bytes; at += each, offset += call.stride) {
        std::vector<rma::Ranges::Range*> ranges;
        if (!window.ranges.cover(offset, each, ranges)) return Status::access;
        std::uint64_t begin = offset;
        for (const rma::Ranges::Range* range : ranges) {
            const std::uint64_t bytes = std::min(offset + each, range->begin + range->bytes) - begin;
            std::byte* const place = window.session().memory->direct(
                {range->region, range->address, range->bytes}, begin - range->begin, bytes);
            if (place == nullptr) return Status::unsupported;
            pieces.emplace_back(place, bytes);
            begin += bytes;
        }
    }
    const auto kind = static_cast<OpKind>(call.operation);
    if (rma::is_update(kind) && window.updating && is_being_updated(window, call.offset, call.bytes))
        return Status::unsupported;
    std::atomic_thread_fence(std::memory_order_release);
    core_.counters.bytes_received += call.operands.size();
    if (kind == OpKind::put) {
        std::span<const std::byte> rest = call.operands;
        for (const std::span<std::byte> piece : pieces) {
            std::memcpy(piece.data(), rest.data(), piece.size());
            rest = rest.subspan(piece.size());
        }
        return Status::ok;
    }
    std::vector<std::byte> bytes;
    for (const std::span<std::byte> piece : pieces)
        bytes.insert(bytes.end(), piece.begin(), piece.end());
    if (kind == OpKind::get || rma::result_bytes(kind, call.bytes) > 0) {
        direct_result_ = bytes;
        result = direct_result_;
        core_.counters.bytes_sent += result.size();
    }
    if (kind == OpKind::get) return Status::ok;
    const Status status = apply_update(kind, static_cast<schedule::DataType>(call.type), call.reduction,
                                       call.operands.data(), bytes.data(), bytes.size());
    if (is_error(status)) return status;
    const std::byte* from = bytes.data();
    for (const std::span<std::byte> piece : pieces) {
        std::memcpy(piece.data(), from, piece.size());
        from += piece.size();
    }
    return Status::ok;
}

// What is not free at once is refused with retry.
Status OneSided::lock_at_once(Window& window, const DirectOperation& call) {
    const Team& team = *window.team;
    if (call.origin >= team.job_ranks.size() || team.job_ranks[call.origin] != call.origin_job)
        return Status::protocol;
    const auto kind = static_cast<OpKind>(call.operation);
    if (kind == OpKind::unlock) {
        std::vector<rma::LockQueue::Asker> granted;
        const bool held = window.lock.unlock(call.origin, granted);
        for (const auto& asker : granted)
            answer(*team.peers[asker.rank], asker.token, Status::ok);
        return held ? Status::ok : Status::invalid;
    }
    // A rank that is gone may hold it for ever.
    if (team.any_gone()) return Status::peer_lost;
    switch (window.lock.try_lock({call.origin, kind == OpKind::lock_exclusive})) {
        case rma::LockQueue::Answer::granted:
            return Status::ok;
        case rma::LockQueue::Answer::refused:
            return Status::invalid;
        case rma::LockQueue::Answer::waits:
            break;
    }
    return Status::retry;
}

Status OneSided::update(const DirectOperation& call, std::byte* place, std::span<const std::byte>& result) {
    const auto kind = static_cast<OpKind>(call.operation);
    const auto type = static_cast<schedule::DataType>(call.type);
    const bool fetches = rma::result_bytes(kind, call.bytes) > 0;
    direct_result_.resize(call.bytes);
    Status status = Status::ok;
    if (!update_atomically(kind, type, call.reduction, call.operands.data(), place, call.bytes,
                           fetches ? direct_result_.data() : nullptr)) {
        if (fetches) std::memcpy(direct_result_.data(), place, call.bytes);
        status = apply_update(kind, type, call.reduction, call.operands.data(), place, call.bytes);
    }
    if (fetches) result = direct_result_;
    return status;
}

}  // namespace offpath::engine
