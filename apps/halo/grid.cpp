#include "halo/grid.h"

#include <limits>

namespace halo {

namespace {

// Returns the number of cells that the largest block sends. A dimension that is not cut sends nothing, or
// only to its own block.
std::int64_t surface(const Domain& domain, const std::array<int, 3>& grid) {
    std::int64_t cells = 0;
    for (int dim = 0; dim < 3; ++dim) {
        if (grid[dim] == 1) continue;
        std::int64_t face = 2;
        for (int other = 0; other < 3; ++other)
            if (other != dim) face *= (domain.extent(other) + grid[other] - 1) / grid[other];
        cells += face;
    }
    return cells;
}

}  // namespace

bool make_block(const Domain& domain, int ranks, int rank, Block& block) {
    auto least = std::numeric_limits<std::int64_t>::max();
    bool found = false;
    // Among equally good cuts, the first one wins. It cuts the slow dimensions, whose faces are contiguous.
    for (int a = ranks; a >= 1; --a) {
        for (int b = ranks / a; ranks % a == 0 && b >= 1; --b) {
            const std::array<int, 3> grid{a, b, ranks / a / b};
            if (ranks / a % b != 0) continue;
            bool fits = true;
            for (int dim = 0; dim < 3; ++dim)
                fits = fits && grid[dim] <= domain.extent(dim);
            if (!fits || surface(domain, grid) >= least) continue;
            least = surface(domain, grid);
            block.grid = grid;
            found = true;
        }
    }
    if (!found) return false;

    const std::array<int, 3> stride{block.grid[1] * block.grid[2], block.grid[2], 1};
    for (int dim = 0; dim < 3; ++dim) {
        const int parts = block.grid[dim], at = rank / stride[dim] % parts;
        const std::int64_t extent = domain.extent(dim);
        block.first[dim] = extent * at / parts;
        block.n[dim] = extent * (at + 1) / parts - block.first[dim];
        for (int side = 0; side < 2; ++side) {
            const int next = at + (side == 0 ? -1 : 1);
            const bool outside = next < 0 || next >= parts;
            if (!domain.uses(dim) || (outside && !domain.periodic))
                block.neighbour[dim][side] = -1;
            else
                block.neighbour[dim][side] = rank + ((next + parts) % parts - at) * stride[dim];
        }
    }
    return true;
}

}  // namespace halo
