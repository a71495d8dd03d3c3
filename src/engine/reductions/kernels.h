// What the device computes: reductions of typed arrays, and kernels that were registered under a number.
// Threads: register_kernel before any engine runs; the rest from any thread.
#pragma once

#include "base/status.h"
#include "schedule/op.h"

#include <cstddef>

namespace offpath::engine {

// dst[i] = dst[i] (reduction) src[i] over bytes / size_of(type) elements; both aligned to the type or not.
// What C's operators give: minimum is `dst < src ? dst : src`, so that the result is src where one is not a
// number; truth is 1 or 0; integers wrap; equal values of minloc and maxloc take the lower index. The same
// bits on every machine, for long doubles on those of one architecture. unsupported: schedule::defined() does
// not hold.
Status reduce(schedule::DataType type, schedule::Reduction reduction, const std::byte* src, std::byte* dst,
              std::size_t bytes);

// Runs on the proxy's thread and must be short: everything else of that proxy waits for it. Returns 0 on
// success.
using Kernel = int (*)(const void* src, void* dst, std::size_t bytes);
// Status::invalid when the number is taken.
Status register_kernel(std::uint64_t number, Kernel kernel);
// unsupported: no such kernel; system: it failed.
Status run_kernel(std::uint64_t number, const std::byte* src, std::byte* dst, std::size_t bytes);

}  // namespace offpath::engine
