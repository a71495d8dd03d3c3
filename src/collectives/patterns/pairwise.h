// Pairwise exchange: in step 1 .. size - 1 a rank sends to the rank `step` places after it and receives from
// the rank `step` places before it. In each step every rank therefore has exactly one sender. Peer arithmetic
// only.
#pragma once

#include <cstdint>

namespace offpath::collectives {

struct Pairwise {
    std::uint32_t rank = 0, size = 1;

    std::uint32_t steps() const { return size - 1; }
    std::uint32_t target(std::uint32_t step) const {
        return static_cast<std::uint32_t>((std::uint64_t{rank} + step) % size);
    }
    std::uint32_t source(std::uint32_t step) const {
        return static_cast<std::uint32_t>((std::uint64_t{rank} + size - step) % size);
    }
};

}  // namespace offpath::collectives
