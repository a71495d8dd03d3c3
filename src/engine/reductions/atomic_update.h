// Updates or stores one element of a window with an atomic instruction. It is therefore atomic to accesses of
// other processes that map the same memory. Threads: any.
#pragma once

#include "rma/access.h"

#include <cstddef>
#include <span>

namespace offpath::engine {

// Performs the access at `target` and stores the old value in `former` (may be null). False, and nothing
// happens: the target is not one aligned element of 4 or 8 bytes, or no instruction does this operation.
// Supported are sum, and, or, exclusive or on integers, and replace, no_op and compare_swap on any type.
bool update_atomically(const rma::Access& access, const std::byte* operands, std::byte* target,
                       std::byte* former);

// Stores `from` at `to`. An aligned word of 4 or 8 bytes becomes visible as a whole, after all earlier
// stores; anything else is copied as memcpy does.
void store_at_once(std::byte* to, std::span<const std::byte> from);

}  // namespace offpath::engine
