// Copying inside a node, between mapped memory.
#pragma once

#include <cstddef>

namespace offpath::memory {

// As memcpy, for memory that does not overlap. Long copies avoid reading the destination's cache lines first
// where the processor has a fast string move, which the C library gives up for at sizes near its caches'.
void copy_bytes(void* destination, const void* source, std::size_t bytes);

}  // namespace offpath::memory
