// The computation of the device: reductions of typed arrays. Threads: any.
#pragma once

#include "base/status.h"
#include "schedule/op.h"

#include <cstddef>

namespace offpath::engine {

// dst[i] = dst[i] (reduction) src[i] over bytes / size_of(type) elements. Alignment is not required. Results
// are those of C's operators. minimum is `dst < src ? dst : src`, so the result is src if one operand is not
// a number. Truth values are 1 or 0; integers wrap; minloc and maxloc take the lower index of equal values.
// The bits are the same on every machine, for long doubles on machines of one architecture. unsupported:
// schedule::defined() does not hold.
Status reduce(schedule::DataType type, schedule::Reduction reduction, const std::byte* src, std::byte* dst,
              std::size_t bytes);

}  // namespace offpath::engine
