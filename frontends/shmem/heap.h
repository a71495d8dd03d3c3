// The symmetric heap of this process: first the library's own internal_bytes, then the part from which
// shmem_malloc and similar calls allocate. Threads: any. Every PE must make the calls that allocate in the
// same order.
#pragma once

#include <cstddef>

namespace offpath::shmem {

// The `bytes` bytes of the heap segment from `begin` on are for the program.
void open_heap(std::byte* begin, std::size_t bytes);
void close_heap();

// Null: out of memory; a message was written. `alignment`: 0 or a power of two.
void* heap_allocate(std::size_t bytes, std::size_t alignment);
// Ends the job if no block begins at `address`.
void heap_free(void* address);
// Whether a block begins at `address`.
bool heap_has(const void* address);
// Returns the bytes that were asked for. Ends the job if no block begins at `address`.
std::size_t heap_bytes_at(const void* address);
bool heap_resize(void* address, std::size_t bytes);
// Returns null if all of [address, address + bytes) lies in one block; otherwise a text that says what is
// wrong.
const char* heap_problem(const void* address, std::size_t bytes, std::size_t& block_bytes);

}  // namespace offpath::shmem
