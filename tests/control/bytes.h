// Bytes as text, for expected values.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace offpath::test {

inline std::string hex(std::span<const std::byte> bytes) {
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (std::byte b : bytes) {
        text += digits[static_cast<unsigned>(b) >> 4];
        text += digits[static_cast<unsigned>(b) & 15];
    }
    return text;
}

}  // namespace offpath::test
