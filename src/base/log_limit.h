// LogLimit: limits log lines that an untrusted peer can cause: a burst of ten, then one a second. Threads:
// one.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>

namespace offpath {

class LogLimit {
  public:
    // Returns false when the line must be left out; it is counted.
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
    // Text for the next line that says how many lines were left out before it. Empty when there were none.
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
