// A wait for other ranks that does not occupy the core for long.
//
// In a rebuild, several ranks may share a core, and hosts that wait for a device sleep. A rank that polls
// without a pause takes time from the very rank that it waits for, even if it yields between two polls. So it
// polls for a short time, and then sleeps between polls.
#pragma once

#include <time.h>

#include <chrono>

namespace minimd {

// Blocks until look() returns true. look() is called again and again by this thread.
template <typename Look>
void wait_patiently(const Look& look) {
    using Clock = std::chrono::steady_clock;
    constexpr auto eager = std::chrono::microseconds(20);
    constexpr timespec nap{0, 20000};
    const Clock::time_point from = Clock::now();
    while (!look())
        if (Clock::now() - from > eager) nanosleep(&nap, nullptr);
}

}  // namespace minimd
