// Names a message between two ranks of a team. Both ends choose it; it is used once at a time.
#pragma once

#include <cstdint>

namespace offpath {

struct MessageKey {
    std::uint64_t high = 0, low = 0;
    friend bool operator==(const MessageKey&, const MessageKey&) = default;
};

}  // namespace offpath
