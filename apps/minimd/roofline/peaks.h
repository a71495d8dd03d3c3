// What a core can do at most: multiply-adds and bytes a second, with vectors as wide as the kernels'.
#pragma once

#include <cstddef>

namespace minimd {

// Floating-point operations a second of multiply-adds that depend on nothing that is not ready; `lanes` as in
// Kernels.
template <typename Real>
double peak_flops(int lanes);

// Bytes a second, read and written, of y = a x + y over arrays of `bytes` in all, again and again.
template <typename Real>
double peak_bytes(int lanes, std::size_t bytes);

}  // namespace minimd
