// The most that a core can do, in multiply-adds and bytes per second, with vectors as wide as the kernels'.
#pragma once

#include <cstddef>

namespace minimd {

// Returns the floating-point operations per second of independent multiply-adds. `lanes` is that of Kernels.
template <typename Real>
double peak_flops(int lanes);

// Returns the bytes per second, read and written, of y = a x + y over arrays of `bytes` bytes in all, again
// and again.
template <typename Real>
double peak_bytes(int lanes, std::size_t bytes);

}  // namespace minimd
