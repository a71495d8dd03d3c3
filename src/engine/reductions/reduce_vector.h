// Reductions in vector code for all types except long doubles. The first call looks up the best instructions
// of this machine. Results equal those of plain C loops, bit for bit, on every machine: no fused
// multiply-add, no reordering. Threads: any.
#pragma once

#include "base/status.h"
#include "schedule/op.h"

#include <cstddef>

namespace offpath::engine {

// The same as reduce() in reduce.h. unsupported: a type or combination without vector code.
Status reduce_vector(schedule::DataType type, schedule::Reduction reduction, const std::byte* src,
                     std::byte* dst, std::size_t bytes);

}  // namespace offpath::engine
