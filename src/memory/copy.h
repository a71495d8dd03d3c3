// Copies between mapped memory inside a node.
#pragma once

#include <cstddef>

namespace offpath::memory {

// Like memcpy, for memory that does not overlap. Where the processor has a fast string move, long copies do
// not read the destination's cache lines first. The C library stops using that move at sizes near those of
// its caches.
void copy_bytes(void* destination, const void* source, std::size_t bytes);

}  // namespace offpath::memory
