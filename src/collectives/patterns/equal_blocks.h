// Contiguous blocks of one size, one per rank.
#pragma once

#include <cstdint>
#include <vector>

namespace offpath::collectives {

struct EqualBlocks {
    EqualBlocks(std::uint32_t count, std::uint64_t block) : bytes(count, block), offsets(count) {
        for (std::uint32_t i = 0; i < count; ++i)
            offsets[i] = i * block;
    }
    std::vector<std::uint64_t> bytes, offsets;
};

}  // namespace offpath::collectives
