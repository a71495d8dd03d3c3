// Dissemination: in round k a rank informs the rank 2^k places after it. After ceil(log2(size)) rounds every
// rank has heard from every other. D. Hensgen, R. Finkel, U. Manber, Two algorithms for barrier
// synchronization (1988). Peer arithmetic only.
#pragma once

#include <bit>
#include <cstdint>

namespace offpath::collectives {

struct Dissemination {
    std::uint32_t rank = 0, size = 1;

    std::uint32_t rounds() const { return static_cast<std::uint32_t>(std::bit_width(size - 1)); }
    std::uint32_t target(std::uint32_t round) const {
        return static_cast<std::uint32_t>((std::uint64_t{rank} + (std::uint64_t{1} << round)) % size);
    }
};

}  // namespace offpath::collectives
