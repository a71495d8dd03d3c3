// The memory of this process that windows on the device expose, and the end of memory from MPI_Alloc_mem. The
// device releases memory only when no window uses it, and a window's end waits for all of its ranks. Memory
// that is freed while a window uses it therefore stays until the last such window is gone. Thread-safe.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace offpath::mpi {

struct Window;

// The window uses [base, base + bytes) from now on.
void expose(const Window& window, const void* base, std::size_t bytes);
// The window has released its memory that begins at `base`, or all of its memory.
void conceal(const Window& window, const void* base);
void conceal(const Window& window);

// Whether the window uses memory that begins at `base`.
bool is_exposed(const Window& window, const void* base);
// The window's memory, as addresses and bytes.
std::vector<std::pair<void*, std::size_t>> exposed_by(const Window& window);

// Frees memory of offpath_mem_alloc now, or when no window uses any of it.
void free_memory(void* base, std::size_t bytes);

}  // namespace offpath::mpi
