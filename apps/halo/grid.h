// The domain and a rank's block of it. Pure functions, for any thread.
//
// Dimensions are counted from the slowest, 0, to the contiguous one, 2. A problem with fewer dimensions uses
// the last ones; the others have one cell and no halo. Side 0 is towards smaller indices, side 1 towards
// larger ones.
#pragma once

#include <array>
#include <cstdint>

namespace halo {

struct Domain {
    int dims = 2;           // 1 .. 3
    std::int64_t size = 1;  // cells along each dimension
    bool periodic = false;  // otherwise the cells outside are 0

    std::int64_t extent(int dim) const { return uses(dim) ? size : 1; }
    bool uses(int dim) const { return dim >= 3 - dims; }
};

struct Block {
    std::array<int, 3> grid{1, 1, 1};        // of the processes
    std::array<std::int64_t, 3> n{1, 1, 1};  // cells of this rank
    std::array<std::int64_t, 3> first{};     // its first cell in the domain
    std::array<std::array<int, 2>, 3> neighbour{{{-1, -1}, {-1, -1}, {-1, -1}}};  // ranks; -1: none
};

// Cuts the domain into blocks that differ by at most one plane, with the least surface. Returns false if
// there are more ranks than the domain can be cut into.
bool make_block(const Domain& domain, int ranks, int rank, Block& block);

}  // namespace halo
