// Windows as the client keeps them. Owned by the context.
#pragma once

#include "client/team.h"
#include "rma/operation.h"

#include <offpath/windows.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

struct offpath_window {
    offpath_context* context = nullptr;
    offpath_team* team = nullptr;
    std::uint64_t id = 0;  // the same on all ranks of the team
    bool dynamic = false;
    // What went to a target through the own proxy: for what may take the direct path.
    struct Target {
        std::uint64_t loose = 0;    // of all without a request, the number of the last one to this target
        std::uint64_t flushed = 0;  // up to which they are done
        std::uint32_t watched = 0;  // with a request, and not known to be done
        std::uint32_t watched_updates = 0;
        bool mapped = false;      // its device has the window's memory mapped
        bool not_direct = false;  // a direct operation was refused
        // Of locks, so many go by the own proxy, where one was not free at once.
        std::uint32_t queued_locks = 0;
        // Asked of the own proxy, where a direct operation met loose ones: whether those up to `asked` are
        // done. Null: nothing is asked.
        offpath_request* question = nullptr;
        std::uint64_t asked = 0;
    };
    std::vector<Target> targets;
    std::uint64_t loose = 0, flushed = 0;  // to all targets
    std::uint32_t watched = 0;
    std::uint32_t questions = 0;
    bool loose_under_way(std::uint32_t target) const {
        return targets[target].loose > std::max(targets[target].flushed, flushed);
    }
    // How many operations without a request lie between flushes, as a guess at how many will.
    struct Batch {
        std::uint32_t before = 0, now = 0;
        std::uint64_t bytes = 0;  // of those of now that take the direct path
        void flushed() {
            if (now > 0) *this = {now, 0, 0};
        }
    } batch;
    // Started without a request since a flush of everything was last waited for.
    std::uint32_t unwatched = 0;
    // A target's next operation is ordered behind all before it where these differ. Empty before the first
    // fence.
    std::uint64_t fences = 0;
    std::vector<std::uint64_t> fenced;  // by target
    bool ordered(std::uint32_t target) const { return !fenced.empty() && fenced[target] != fences; }
    void fence_is_out(std::uint32_t target) {
        if (!fenced.empty()) fenced[target] = fences;
    }
    // What a flush found that the library made by itself: for the next flush of the program.
    offpath::Status unreported = offpath::Status::ok;
};

namespace offpath::client {

struct DirectOperation {
    rma::OpKind kind = rma::OpKind::put;
    std::uint8_t type = 0, reduction = 0;
    std::uint32_t target = 0;
    std::uint64_t offset = 0, bytes = 0;
    std::uint64_t element = 0, stride = 0;  // 0: the bytes lie side by side
    std::span<const std::byte> operands;
    void* result = nullptr;
};
// Starts by the direct path what has no request, if the program starts few of these between flushes. False:
// nothing has happened. Under the context's lock.
bool start_directly(offpath_window& window, const DirectOperation& operation);
// An unlock, where nothing is under way by the own proxy. False: nothing has happened. Under the lock.
bool unlock_directly(offpath_window& window, std::uint32_t target);
// What takes the direct path, to the target or to OFFPATH_ALL_TARGETS, is done. Not under the lock.
void wait_for_direct(offpath_window& window, std::uint32_t target);
// Both under the context's lock. The request of a flush also tells what is unreported, and keeps the window's
// books when it is done.
Status post_flush(offpath_window& window, std::uint32_t target, offpath_request** request);
// Whether loose ones are still under way to the target; asks the own proxy, so that it is known some time,
// though nobody flushes.
bool loose_under_way(offpath_window& window, std::uint32_t target);
// What post_flush() posted is over. Under the context's lock.
void flush_over(offpath_window& window, const offpath_request& request, Status status);

}  // namespace offpath::client
