// Constants that the two-process tests share with their peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace offpath::link::test {

constexpr std::uint64_t peer_token = 0x0f0e0d0c0b0a0908;

inline std::string to_hex(std::span<const std::byte> bytes) {
    constexpr const char* digits = "0123456789abcdef";
    std::string text;
    for (std::byte byte : bytes) {
        text += digits[std::to_integer<unsigned>(byte) >> 4];
        text += digits[std::to_integer<unsigned>(byte) & 15];
    }
    return text;
}
inline std::vector<std::byte> from_hex(const std::string& text) {
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i + 1 < text.size(); i += 2)
        bytes.push_back(static_cast<std::byte>(std::stoul(text.substr(i, 2), nullptr, 16)));
    return bytes;
}

}  // namespace offpath::link::test
