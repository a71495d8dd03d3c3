// The serial result, to compare with.
#pragma once

#include <cstdint>

#include "bspmm/problem.h"

namespace bspmm {

// How many of the holder's tiles of C are not, bit by bit, the sum of their products, formed one after the
// other by this process alone from tiles that it makes again. Values are such that the order of sums does not
// matter.
std::int64_t wrong_tiles(const Problem& problem, int holder, const double* c_tiles);

}  // namespace bspmm
