// Windows as the client keeps them. Owned by the context.
#pragma once

#include "client/team.h"

#include <offpath/windows.h>

#include <cstdint>
#include <vector>

struct offpath_window {
    offpath_context* context = nullptr;
    offpath_team* team = nullptr;
    std::uint64_t id = 0;  // the same on all ranks of the team
    bool dynamic = false;
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

// Both under the context's lock. The request of a flush also tells what is unreported.
Status post_flush(offpath_window& window, std::uint32_t target, offpath_request** request);
// `count` operations without a request are over.
void give_back_unwatched(offpath_window& window, std::uint32_t count);

}  // namespace offpath::client
