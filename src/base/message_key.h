// MessageKey: names a message between two ranks of a team. Both ends choose the key. A key names at most one
// message at a time.
#pragma once

#include <cstdint>

namespace offpath {

struct MessageKey {
    std::uint64_t high = 0, low = 0;
    friend bool operator==(const MessageKey&, const MessageKey&) = default;
};

}  // namespace offpath
