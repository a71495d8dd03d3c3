// The library that a device loads for --variant schedule. It offers the stencil as kernels of offpath's C
// API.
#include <offpath/compute.h>

#include <chrono>

#include "halo/stencil.h"

namespace {

// Whether the kernel was given a halo::Layout and the buffers that it needs.
bool given(size_t argument_bytes, size_t count, size_t wanted) {
    return argument_bytes == sizeof(halo::Layout) && count == wanted;
}

}  // namespace

extern "C" {

// Buffers: the old field, the new field, the faces to send, and the seconds that this kernel has taken so
// far.
OFFPATH_API int halo_boundary(const void* arguments, size_t argument_bytes, void* const* buffers,
                              const size_t* /*bytes*/, size_t count) {
    if (!given(argument_bytes, count, 4)) return OFFPATH_ERR_INVALID;
    const auto begin = std::chrono::steady_clock::now();
    const auto& layout = *static_cast<const halo::Layout*>(arguments);
    auto* const to = static_cast<double*>(buffers[1]);
    halo::step_boundary(layout, static_cast<const double*>(buffers[0]), to);
    halo::pack(layout, halo::Layer::face, to, static_cast<double*>(buffers[2]));
    *static_cast<double*>(buffers[3]) +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return 0;
}

// Buffers: the faces that have arrived, and the new field.
OFFPATH_API int halo_unpack(const void* arguments, size_t argument_bytes, void* const* buffers,
                            const size_t* /*bytes*/, size_t count) {
    if (!given(argument_bytes, count, 2)) return OFFPATH_ERR_INVALID;
    halo::unpack(*static_cast<const halo::Layout*>(arguments), halo::Layer::halo,
                 static_cast<const double*>(buffers[0]), static_cast<double*>(buffers[1]));
    return 0;
}
}
