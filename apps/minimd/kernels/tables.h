#pragma once

#include <vector>

#include "minimd/kernels/kernels.h"

namespace minimd {

// The kernels of one instruction set, the fastest number of lanes first.
template <typename Real>
using KernelTable = std::vector<Kernels<Real>>;

}  // namespace minimd
