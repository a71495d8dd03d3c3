// The symmetric heap of this process: first internal_bytes of the library's own, then what shmem_malloc and
// the others hand out. Threads: any; calls that allocate come in the same order on every PE.
#pragma once

#include <cstddef>

namespace offpath::shmem {

// The part of the heap segment from `begin` on, `bytes` of them, is the user's.
void open_heap(std::byte* begin, std::size_t bytes);
void close_heap();

// Null: none is left, which is said. `alignment`: 0 or a power of two.
void* heap_allocate(std::size_t bytes, std::size_t alignment);
// Ends the job if no block begins there.
void heap_free(void* address);
// Whether a block begins there.
bool heap_has(const void* address);
// The bytes that were asked for. Ends the job if no block begins there.
std::size_t heap_bytes_at(const void* address);
bool heap_resize(void* address, std::size_t bytes);
// Whether all of [address, address + bytes) lies in one block; if not, what is wrong in words.
const char* heap_problem(const void* address, std::size_t bytes, std::size_t& block_bytes);

}  // namespace offpath::shmem
