// Waits for what other ranks send in a rebuild, where a device brings the ghosts of other steps and hosts
// that wait for it sleep. Ranks that share a core get there one after the other, and one that asks again and
// again, though it gives way in between, takes time from the one that it waits for: after a short while it
// naps between two looks.
#pragma once

#include <time.h>

#include <chrono>

namespace minimd {

// Until look() says that it is there.
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
