#include "base/patience.h"

#include "base/environment.h"

#include <fmt/format.h>

#include <stdexcept>

namespace offpath {

std::uint64_t lost_after_ns() {
    static const std::uint64_t limit = [] {
        constexpr std::uint64_t usual_s = 8, most_s = 3600, second = 1'000'000'000;
        const std::uint64_t seconds = environment::number("OFFPATH_LOST_AFTER_S", usual_s);
        if (seconds > most_s)
            throw std::invalid_argument(
                fmt::format("OFFPATH_LOST_AFTER_S={}: 0 to {} is accepted", seconds, most_s));
        return seconds == 0 ? UINT64_MAX : seconds * second;
    }();
    return limit;
}

}  // namespace offpath
