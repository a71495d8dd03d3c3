// The serial result for comparison.
#pragma once

#include <cstdint>

#include "bspmm/problem.h"

namespace bspmm {

// How many of the holder's tiles of C differ, in any bit, from the sum of their products. This process makes
// the tiles again and adds the products one after the other. The values are such that the order of a sum does
// not matter.
std::int64_t wrong_tiles(const Problem& problem, int holder, const double* c_tiles);

}  // namespace bspmm
