// One element of a window, updated with an atomic instruction, so that it is atomic to those of processes
// that have the same memory mapped. Threads: any.
#pragma once

#include "rma/operation.h"
#include "schedule/op.h"

#include <cstddef>

namespace offpath::engine {

// Updates `bytes` bytes at `target` and leaves what was there in `former` (may be null). False, and nothing
// is done: it is not one aligned element of 4 or 8 bytes, or no instruction does this (integers: sum, and,
// or, exclusive or; anything: replace, no_op, compare_swap).
bool update_atomically(rma::OpKind kind, schedule::DataType type, std::uint8_t reduction,
                       const std::byte* operands, std::byte* target, std::size_t bytes, std::byte* former);

}  // namespace offpath::engine
