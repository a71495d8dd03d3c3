// LogLimit: keeps lines that strangers can cause from filling a log: ten at once, then one a second. Threads:
// one.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>

namespace offpath {

class LogLimit {
  public:
    // False: the line is left out, and counted.
    bool may_speak(std::uint64_t now_ns) {
        if (now_ns - earned_ns_ > interval_ns) {
            const std::uint64_t earned = earned_ns_ == 0 ? at_once : (now_ns - earned_ns_) / interval_ns;
            lines_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(lines_ + earned, at_once));
            earned_ns_ = now_ns;
        }
        if (lines_ == 0) {
            ++silent_;
            return false;
        }
        --lines_;
        return true;
    }
    // What the next line says of those left out before it; empty: there were none.
    std::string left_out() {
        const std::uint64_t others = silent_;
        silent_ = 0;
        return others > 0 ? fmt::format(" (and {} others before)", others) : std::string();
    }

  private:
    static constexpr std::uint32_t at_once = 10;
    static constexpr std::uint64_t interval_ns = 1'000'000'000;
    std::uint64_t earned_ns_ = 0;
    std::uint32_t lines_ = 0;
    std::uint64_t silent_ = 0;
};

}  // namespace offpath
