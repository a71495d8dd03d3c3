// Subtrees of a binomial tree (binomial_tree.h). A subtree is a range of places. Translated to ranks, the
// range may wrap around to 0; it is then two runs. Peer arithmetic only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace offpath::collectives {

struct Subtrees {
    std::uint32_t size = 1, root = 0;

    struct Run {
        std::uint32_t index, rank, count;  // `count` ranks from `rank` on
    };
    std::uint32_t place(std::uint32_t rank) const {
        return rank >= root ? rank - root : rank + (size - root);
    }
    // How many ranks the subtree of `rank` has. `rank` is not the root.
    std::uint32_t count(std::uint32_t rank) const {
        const std::uint32_t own = place(rank);
        return std::min(own & (~own + 1), size - own);
    }
    std::vector<Run> whole(std::uint32_t rank) const { return {{0, rank, count(rank)}}; }
    std::vector<Run> runs_of(std::uint32_t rank) const {
        const std::uint32_t all = count(rank), before_end = std::min(all, size - rank);
        std::vector<Run> runs{{0, rank, before_end}};
        if (before_end < all) runs.push_back({1, 0, all - before_end});
        return runs;
    }
};

}  // namespace offpath::collectives
