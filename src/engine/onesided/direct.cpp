// Operations that a host rank asks of this proxy without going through its own proxy. Each is done at once or
// not at all.
#include "engine/onesided/checks.h"
#include "engine/onesided/onesided.h"
#include "engine/reductions/atomic_update.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace offpath::engine {

using rma::OpKind;

namespace {

// Whether the call is consistent, and of a kind that is done at once.
bool sound(const DirectAccess& call) {
    if (!rma::is_kind(call.kind)) return false;
    if (rma::is_lock(call.kind)) return call.bytes == 0 && call.operands.empty();
    if (call.operands.size() != call.operand_bytes() || !is_whole(call)) return false;
    if (call.element == 0) return true;
    const std::uint64_t count = call.bytes / call.element;
    return !rma::is_update(call.kind) && call.bytes % call.element == 0 &&
           count <= rma::direct::most_elements && call.stride >= call.element &&
           call.stride <= schedule::max_slot_bytes / count;
}

// The bytes from the first byte of the call to the last, with the gaps between its elements.
std::uint64_t extent(const DirectAccess& call) {
    return call.element == 0 ? call.bytes : (call.bytes / call.element - 1) * call.stride + call.element;
}

void put_elements(const DirectAccess& call, std::byte* place) {
    for (std::uint64_t at = 0; at < call.bytes; at += call.element, place += call.stride)
        store_at_once(place, call.operands.subspan(at, call.element));
}

void get_elements(const DirectAccess& call, const std::byte* place, std::byte* to) {
    for (std::uint64_t at = 0; at < call.bytes; at += call.element, place += call.stride)
        std::memcpy(to + at, place, call.element);
}

// Whether an update has read some of these bytes and has not written them yet.
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

Status OneSided::at_once(const DirectAccess& call, std::span<const std::byte>& result) {
    if (!sound(call)) return Status::protocol;
    const auto found =
        windows_.find(std::make_tuple(call.job.high, call.job.low, call.team, call.target, call.window));
    if (found == windows_.end()) return Status::access;
    Window& window = *found->second;
    if (window.ending || window.retired || window.session().closing) return Status::peer_lost;
    if (rma::is_lock(call.kind)) return lock_at_once(window, call);
    if (window.remote_ledger && rma::is_update(call.kind)) return Status::unsupported;
    const rma::Ranges::Range* range = window.ranges.find(call.offset, extent(call));
    if (range == nullptr) return window.dynamic ? across_ranges(window, call, result) : Status::access;
    std::byte* const place = window.session().memory->direct({range->region, range->address, range->bytes},
                                                             call.offset - range->begin, extent(call));
    if (place == nullptr) return Status::unsupported;

    // A reader that sees the accesses from here on also sees what was written before.
    std::atomic_thread_fence(std::memory_order_release);
    core_.counters.bytes_received += call.operands.size();
    const OpKind kind = call.kind;
    if (kind == OpKind::put) {
        window.ledger.marks.begin(call.origin, call.mark);
        if (call.element > 0) {
            put_elements(call, place);
        } else {
            store_at_once(place, call.operands);
        }
        window.ledger.marks.end(call.origin, call.mark);
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
        window.ledger.begin(call.origin, call.bytes, call.mark);
        const Status status = update(call, place, result);
        if (is_error(status)) return status;
        window.ledger.marks.fetched(call.origin, call.mark, result);
        window.ledger.end(call.origin, call.bytes, call.mark);
    }
    core_.counters.bytes_sent += result.size();
    return Status::ok;
}

// Handles a call to a dynamic window that spans several ranges, or whose elements lie in several.
Status OneSided::across_ranges(Window& window, const DirectAccess& call, std::span<const std::byte>& result) {
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
    const OpKind kind = call.kind;
    if (rma::is_update(kind) && window.updating && is_being_updated(window, call.offset, call.bytes))
        return Status::unsupported;
    std::atomic_thread_fence(std::memory_order_release);
    core_.counters.bytes_received += call.operands.size();
    if (kind == OpKind::put) {
        window.ledger.marks.begin(call.origin, call.mark);
        std::span<const std::byte> rest = call.operands;
        for (const std::span<std::byte> piece : pieces) {
            std::memcpy(piece.data(), rest.data(), piece.size());
            rest = rest.subspan(piece.size());
        }
        window.ledger.marks.end(call.origin, call.mark);
        return Status::ok;
    }
    std::vector<std::byte> bytes;
    for (const std::span<std::byte> piece : pieces)
        bytes.insert(bytes.end(), piece.begin(), piece.end());
    if (call.result_bytes() > 0) {
        direct_result_ = bytes;
        result = direct_result_;
        core_.counters.bytes_sent += result.size();
    }
    if (kind == OpKind::get) return Status::ok;
    const Status status = apply_update(call, call.operands.data(), bytes.data(), bytes.size());
    if (is_error(status)) return status;
    window.ledger.begin(call.origin, call.bytes, call.mark);
    const std::byte* from = bytes.data();
    for (const std::span<std::byte> piece : pieces) {
        std::memcpy(piece.data(), from, piece.size());
        from += piece.size();
    }
    window.ledger.marks.fetched(call.origin, call.mark, result);
    window.ledger.end(call.origin, call.bytes, call.mark);
    return Status::ok;
}

// Returns retry if the lock is not free at once.
Status OneSided::lock_at_once(Window& window, const DirectAccess& call) {
    const Team& team = *window.team;
    if (call.origin >= team.job_ranks.size() || team.job_ranks[call.origin] != call.origin_job)
        return Status::protocol;
    const OpKind kind = call.kind;
    if (kind == OpKind::unlock) {
        std::vector<rma::LockQueue::Asker> granted;
        const bool held = window.lock.unlock(call.origin, granted);
        for (const auto& asker : granted)
            answer(*team.peers[asker.rank], asker.token, Status::ok);
        return held ? Status::ok : Status::invalid;
    }
    // A rank that is gone may hold the lock forever.
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

Status OneSided::update(const DirectAccess& call, std::byte* place, std::span<const std::byte>& result) {
    const bool fetches = call.result_bytes() > 0;
    direct_result_.resize(call.bytes);
    Status status = Status::ok;
    if (!update_atomically(call, call.operands.data(), place, fetches ? direct_result_.data() : nullptr)) {
        if (fetches) std::memcpy(direct_result_.data(), place, call.bytes);
        status = apply_update(call, call.operands.data(), place, call.bytes);
    }
    if (fetches) result = direct_result_;
    return status;
}

}  // namespace offpath::engine
