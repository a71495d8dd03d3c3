// The profiler's clocks: ticks are cheap, nanoseconds are common to all processes of a machine.
#pragma once

#include <cstdint>
#include <ctime>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace offpath::profile {

inline std::uint64_t nanoseconds(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

inline std::uint64_t ticks() {
#if defined(__x86_64__)
    return __rdtsc();
#else
    return nanoseconds(CLOCK_MONOTONIC);
#endif
}

}  // namespace offpath::profile
