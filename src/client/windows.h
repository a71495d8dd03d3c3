// The client's windows. The context owns them.
#pragma once

#include "client/team.h"
#include "rma/direct.h"
#include "schedule/op.h"
#include "ways/short_way.h"

#include <offpath/windows.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

struct offpath_window {
    offpath_context* context = nullptr;
    offpath_team* team = nullptr;
    std::uint64_t id = 0;  // the same on all ranks of the team
    bool dynamic = false;
    // What this rank has sent to a target through its own proxy; it decides what may take the direct path. A
    // loose operation is one without a request.
    struct Target {
        std::uint64_t loose = 0;    // number of the last loose operation to this target
        std::uint64_t flushed = 0;  // loose operations up to this number are done
        std::uint32_t watched = 0;  // operations with a request that are not known to be done
        std::uint32_t watched_updates = 0;
        // The window's `fences` when `watched` became 1, and whether a fence of this target alone came since.
        std::uint64_t watched_fences = 0;
        bool watched_fenced = false;
        bool mapped = false;      // its device has mapped the window's memory
        bool not_direct = false;  // a direct operation was refused
        // The number of locks that go through the own proxy, because they were not free at once.
        std::uint32_t queued_locks = 0;
        // A flush of the own proxy, posted when a direct operation met loose ones. It tells whether those up
        // to `asked` are done. Null: none is outstanding.
        offpath_request* question = nullptr;
        std::uint64_t asked = 0;
    };
    std::vector<Target> targets;
    std::uint64_t loose = 0, flushed = 0;  // to all targets
    std::uint32_t watched = 0;
    std::uint32_t questions = 0;
    bool loose_outstanding(std::uint32_t target) const {
        return targets[target].loose > std::max(targets[target].flushed, flushed);
    }
    offpath::ways::Batch batch;
    // How many operations were started without a request since the program last waited for a flush of
    // everything.
    std::uint32_t unwatched = 0;
    // A target's next operation is ordered after all earlier ones if `fenced` and `fences` differ for it.
    // Empty before the first fence.
    std::uint64_t fences = 0, fence_calls = 0;
    std::vector<std::uint64_t> fenced;  // by target
    // Whether a fence lies between an outstanding operation with a request and now. The operation that a
    // fence has ordered may be outstanding, too.
    bool watched_before_fence(std::uint32_t target) const {
        const Target& there = targets[target];
        return there.watched > 0 && (there.watched_fenced || there.watched_fences != fences);
    }
    void watch(std::uint32_t target) {
        ++watched;
        Target& there = targets[target];
        if (there.watched++ > 0) return;
        there.watched_fences = fences;
        there.watched_fenced = false;
    }
    bool ordered(std::uint32_t target) const { return !fenced.empty() && fenced[target] != fences; }
    void fence_is_out(std::uint32_t target) {
        if (!fenced.empty()) fenced[target] = fences;
    }
    // Of the next operation (rma/marks.h).
    std::uint32_t mark = 0;
    // Errors found by the library's own flushes; the program's next flush reports them.
    offpath::Status unreported = offpath::Status::ok;
};

namespace offpath::client {

// An operation that the program asks for: what it does at its target, and the memory of this process that it
// reads and writes.
struct WindowCall : rma::direct::StridedAccess {
    explicit WindowCall(const rma::Access& access, const void* origin = nullptr, void* into = nullptr)
        : StridedAccess{access},
          operands(static_cast<const std::byte*>(origin), origin == nullptr ? 0 : access.operand_bytes()),
          result(into) {}

    std::span<const std::byte> operands;
    void* result;
};
// The operands of a compare_swap: both elements, one behind the other.
struct SwapOperands {
    SwapOperands(const void* origin, const void* compare, std::size_t bytes) {
        std::memcpy(both.data(), origin, bytes);
        std::memcpy(both.data() + bytes, compare, bytes);
    }
    std::array<std::byte, 2 * schedule::most_element_bytes> both{};
};
inline rma::OpKind lock_kind(offpath_lock_t lock) {
    return lock == OFFPATH_LOCK_SHARED ? rma::OpKind::lock_shared : rma::OpKind::lock_exclusive;
}

// Starts an operation without a request on the direct path, if the program starts few of these between
// flushes. False: nothing has happened. Needs the context's lock.
bool start_directly(offpath_window& window, const WindowCall& call);
// Unlocks directly, if nothing is outstanding at the own proxy. False: nothing has happened. Needs the lock.
bool unlock_directly(offpath_window& window, std::uint32_t target);
// Waits until the direct operations to the target, or to OFFPATH_ALL_TARGETS, are done. Must not hold the
// lock.
void wait_for_direct(offpath_window& window, std::uint32_t target);
// Posts a flush. Its request also reports unreported errors, and updates the window's counts when it is done.
// This and the next call need the context's lock.
Status post_flush(offpath_window& window, std::uint32_t target, offpath_request** request);
// Whether loose operations to the target are outstanding. It also asks the own proxy, so that the answer is
// eventually known although the program never flushes.
bool loose_outstanding(offpath_window& window, std::uint32_t target);
// A flush of post_flush() is over. Needs the context's lock.
void flush_over(offpath_window& window, const offpath_request& request, Status status);

}  // namespace offpath::client
