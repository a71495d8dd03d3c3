// The clock of the benchmarks. Threads: any.
#pragma once

#include <chrono>

namespace bench {

// Seconds of the steady clock, since an arbitrary start.
inline double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace bench
