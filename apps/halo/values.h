// The first values of the simulation and the checksum of its result, both by the cells' places in the whole
// domain, so they do not depend on how it is cut. Pure.
#pragma once

#include <cstdint>

#include "halo/grid.h"
#include "halo/stencil.h"

namespace halo {

// Fills both fields: the first one with the first values, halo included, the second one with zeros.
void set_first_values(const Domain& domain, const Block& block, const Layout& layout, double* first,
                      double* second);
// Of this rank's cells. The sum over all ranks, modulo 2^64, is the checksum.
std::uint64_t checksum(const Domain& domain, const Block& block, const Layout& layout, const double* field);

}  // namespace halo
