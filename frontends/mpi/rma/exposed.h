// Which memory of this process windows on the device expose, and the end of memory from MPI_Alloc_mem. The
// device lets go of memory only when no window has it, and a window's end waits for all of its ranks. So
// memory that is given back while a window has it stays until the last such window is gone. Thread-safe.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace offpath::mpi {

struct Window;

// The window has [base, base + bytes) from now on.
void expose(const Window& window, const void* base, std::size_t bytes);
// It has let go of what it has from `base` on, or of all of it.
void conceal(const Window& window, const void* base);
void conceal(const Window& window);

// Whether the window has memory that begins there.
bool is_exposed(const Window& window, const void* base);
// What the window has, as addresses and bytes.
std::vector<std::pair<void*, std::size_t>> exposed_by(const Window& window);

// Ends memory of offpath_mem_alloc: now, or when no window has any of it.
void free_memory(void* base, std::size_t bytes);

}  // namespace offpath::mpi
