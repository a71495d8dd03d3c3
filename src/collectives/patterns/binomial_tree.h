// Binomial tree over places 0 .. size - 1. The root has place 0; the others follow in rank order. The parent
// of a place is that place without its lowest set bit. Peer arithmetic only.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace offpath::collectives {

struct BinomialTree {
    std::uint32_t rank = 0, size = 1, root = 0;

    std::uint32_t place() const { return rank >= root ? rank - root : rank + (size - root); }
    bool is_root() const { return rank == root; }
    std::uint32_t parent() const { return rank_at(place() & (place() - 1)); }
    // The child with the largest subtree comes first.
    std::vector<std::uint32_t> children() const {
        const std::uint32_t own = place();
        const std::uint64_t end = own == 0 ? std::bit_ceil(std::uint64_t{size}) : own & (~own + 1);
        std::vector<std::uint32_t> ranks;
        for (std::uint64_t bit = end >> 1; bit > 0; bit >>= 1)
            if (own + bit < size) ranks.push_back(rank_at(static_cast<std::uint32_t>(own + bit)));
        return ranks;
    }

  private:
    std::uint32_t rank_at(std::uint32_t at) const {
        return at < size - root ? at + root : at - (size - root);
    }
};

}  // namespace offpath::collectives
