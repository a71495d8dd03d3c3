// Each function returns one kernel, compiled for the best instruction set of this processor. Returns null if
// there is none with `lanes` lanes.
#pragma once

#include "minimd/kernels/kernels.h"

namespace minimd {

template <typename Real>
LennardJonesKernel<Real> lennard_jones_kernel(int lanes);

template <typename Real>
SearchKernel search_kernel(int lanes);

}  // namespace minimd
