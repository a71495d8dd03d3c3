// The size of the smallest buffer that holds all blocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace offpath::collectives {

inline std::uint64_t extent(std::span<const std::uint64_t> bytes, std::span<const std::uint64_t> offsets) {
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i)
        if (bytes[i] > 0) end = std::max(end, offsets[i] + bytes[i]);
    return end;
}

}  // namespace offpath::collectives
