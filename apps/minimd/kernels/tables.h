// One entry for each kernel: the best instruction set's, null if there is none with so many lanes.
#pragma once

#include "minimd/kernels/kernels.h"

namespace minimd {

template <typename Real>
LennardJonesKernel<Real> lennard_jones_kernel(int lanes);

template <typename Real>
SearchKernel search_kernel(int lanes);

}  // namespace minimd
