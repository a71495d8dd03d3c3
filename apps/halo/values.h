// The first values of the simulation, and the checksum of its result. Both depend on the cells' places in the
// whole domain, and therefore not on how the domain is cut. Pure functions.
#pragma once

#include <cstdint>

#include "halo/grid.h"
#include "halo/stencil.h"

namespace halo {

// Fills both fields: the first one with the first values, halo included, the second one with zeros.
void set_first_values(const Domain& domain, const Block& block, const Layout& layout, double* first,
                      double* second);
// Returns the checksum of this rank's cells. The checksum of the result is the sum over all ranks, modulo
// 2^64.
std::uint64_t checksum(const Domain& domain, const Block& block, const Layout& layout, const double* field);

}  // namespace halo
