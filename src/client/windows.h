// Windows as the client keeps them. Owned by the context.
#pragma once

#include "client/team.h"

#include <offpath/windows.h>

#include <algorithm>
#include <cstdint>
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
        bool not_direct = false;  // a direct operation was refused
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

// What takes the direct path, to the target or to OFFPATH_ALL_TARGETS, is done. Not under the lock.
void wait_for_direct(offpath_window& window, std::uint32_t target);
// Both under the context's lock. The request of a flush also tells what is unreported.
Status post_flush(offpath_window& window, std::uint32_t target, offpath_request** request);
// Whether loose ones are still under way to the target; asks the own proxy, so that it is known some time,
// though nobody flushes.
bool loose_under_way(offpath_window& window, std::uint32_t target);
// `count` operations without a request are over.
void give_back_unwatched(offpath_window& window, std::uint32_t count);

}  // namespace offpath::client
