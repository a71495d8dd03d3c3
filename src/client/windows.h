// Windows as the client keeps them. Owned by the context.
#pragma once

#include "client/team.h"

#include <offpath/windows.h>

#include <cstdint>

struct offpath_window {
    offpath_context* context = nullptr;
    offpath_team* team = nullptr;
    std::uint64_t id = 0;  // the same on all ranks of the team
    bool dynamic = false;
    // Started without a request since this process last flushed everything.
    std::uint32_t unwatched = 0;
};
