// Packs and unpacks elements in GPU memory with copies by the GPU's driver: one copy for all elements if they
// are plain bytes, else one for each piece of an element. Threads: any.
#pragma once

#include <cstddef>

#include "gpu/memory.h"

namespace offpath::mpi {
struct Elements;
struct Layout;
}  // namespace offpath::mpi

namespace offpath::mpi::gpu {

bool are_in_gpu(const Layout& layout, const void* elements);
bool are_in_gpu(const Elements& described, const void* elements);

// `count` parts of elements, as in pack_parts() and unpack_parts(). False: the driver refused.
bool pack(const Layout& layout, const void* elements, std::size_t count, void* packed);
bool unpack(const Layout& layout, const void* packed, void* elements, std::size_t count);

}  // namespace offpath::mpi::gpu
