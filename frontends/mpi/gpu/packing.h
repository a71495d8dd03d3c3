// Packs and unpacks elements in memory of a GPU, with copies by its driver: one for all where they are plain
// bytes, else one for each piece of an element. Threads: any.
#pragma once

#include <cstddef>

#include "memory.h"

namespace offpath::mpi {
struct Layout;
}

namespace offpath::mpi::gpu {

bool are_in_gpu(const Layout& layout, const void* elements);

// `count` parts of elements, as pack_parts() and unpack_parts(). False: the driver refused.
bool pack(const Layout& layout, const void* elements, std::size_t count, void* packed);
bool unpack(const Layout& layout, const void* packed, void* elements, std::size_t count);

}  // namespace offpath::mpi::gpu
