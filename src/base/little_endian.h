// Reads and writes integers of 1 to 8 bytes in little-endian byte strings. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace offpath {

inline void append_little(std::vector<std::byte>& to, std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i)
        to.push_back(static_cast<std::byte>(value >> (8 * i)));
}

inline void write_little(std::span<std::byte> to, std::size_t at, std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i)
        to[at + i] = static_cast<std::byte>(value >> (8 * i));
}

// The caller makes sure that `from` holds all the bytes.
inline std::uint64_t read_little(std::span<const std::byte> from, std::size_t at, unsigned bytes) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < bytes; ++i)
        value |= std::to_integer<std::uint64_t>(from[at + i]) << (8 * i);
    return value;
}

}  // namespace offpath
