// Ring: every rank passes on to the next rank what came from the previous one. Peer arithmetic only.
#pragma once

#include <cstdint>

namespace offpath::collectives {

struct Ring {
    std::uint32_t rank = 0, size = 1;

    std::uint32_t next() const { return rank + 1 == size ? 0 : rank + 1; }
    std::uint32_t previous() const { return rank == 0 ? size - 1 : rank - 1; }
    std::uint32_t steps() const { return size - 1; }
    // The block sent or received in step 0 .. steps() - 1. A block received in one step is sent in the next.
    std::uint32_t sent_block(std::uint32_t step) const { return (rank + size - step) % size; }
    std::uint32_t received_block(std::uint32_t step) const { return (rank + size - step - 1) % size; }
};

}  // namespace offpath::collectives
