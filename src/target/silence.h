// Silence: how long nothing has been heard from the other side, as a thread that looks again and again sees
// it. A gap between two looks counts for a moment only, so that time in which this process itself was stopped
// or did something else does not count. Threads: one at a time.
#pragma once

#include "base/clock.h"

#include <algorithm>
#include <cstdint>

namespace offpath::target {

class Silence {
  public:
    // Looks.
    std::uint64_t lasts_ns() {
        const std::uint64_t now = now_ns();
        lasted_ += std::min(now - looked_, longest_gap_ns);
        looked_ = now;
        return lasted_;
    }
    // Something was heard.
    void end() { lasted_ = 0; }

  private:
    static constexpr std::uint64_t longest_gap_ns = 250'000'000;
    std::uint64_t looked_ = 0, lasted_ = 0;
};

}  // namespace offpath::target
