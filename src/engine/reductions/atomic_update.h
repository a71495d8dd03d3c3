// One element of a window, updated or stored with an atomic instruction, so that it is atomic to those of
// processes that have the same memory mapped. Threads: any.
#pragma once

#include "rma/operation.h"
#include "schedule/op.h"

#include <cstddef>
#include <span>

namespace offpath::engine {

// Updates `bytes` bytes at `target` and leaves what was there in `former` (may be null). False, and nothing
// is done: it is not one aligned element of 4 or 8 bytes, or no instruction does this (integers: sum, and,
// or, exclusive or; anything: replace, no_op, compare_swap).
bool update_atomically(rma::OpKind kind, schedule::DataType type, std::uint8_t reduction,
                       const std::byte* operands, std::byte* target, std::size_t bytes, std::byte* former);

// One aligned word of 4 or 8 bytes is seen whole or not at all, and after all that was stored before.
void store_at_once(std::byte* to, std::span<const std::byte> from);

}  // namespace offpath::engine
