// Reductions in vector code, for the types that have any: everything but long doubles. One call looks up the
// best instructions of this machine once. The results are those of plain loops in C, bit for bit, on every
// machine: no fused multiply-add, no reordering. Threads: any.
#pragma once

#include "base/status.h"
#include "schedule/op.h"

#include <cstddef>

namespace offpath::engine {

// As reduce() in kernels.h. unsupported: a type or combination that is not served here.
Status reduce_vector(schedule::DataType type, schedule::Reduction reduction, const std::byte* src,
                     std::byte* dst, std::size_t bytes);

}  // namespace offpath::engine
