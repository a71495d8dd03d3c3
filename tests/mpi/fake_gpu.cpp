// Stand-ins for the driver libraries of CUDA, ROCm and Level Zero, to see what the front end does when one of
// their functions fails. A build of this file defines one of FAKE_CUDA, FAKE_ROCM and FAKE_LEVEL_ZERO. With
// FAKE_LACKS, the library has no function that copies.
#include "fake_gpu.h"

#include <cstddef>
#include <cstdint>

// The build hides symbols by default.
#pragma GCC visibility push(default)
extern "C" {

FakeGpu fake_gpu;

#if defined(FAKE_CUDA)

int cuPointerGetAttribute(void* value, int attribute, std::uint64_t address) {
    const bool here = reinterpret_cast<const void*>(address) == fake_gpu.memory;
    if (attribute == 1) {
        if (!here || fake_gpu.context_attribute != 0) return 1;
        *static_cast<void**>(value) = &fake_gpu;
        return 0;
    }
    if (attribute == 2) {
        *static_cast<unsigned*>(value) = here ? fake_gpu.type : 1;
        return fake_gpu.attributes;
    }
    *static_cast<unsigned*>(value) = static_cast<unsigned>(fake_gpu.managed);
    return fake_gpu.managed_attribute;
}
int cuCtxPushCurrent_v2(void*) {
    fake_gpu.pushed += fake_gpu.push == 0 ? 1 : 0;
    return fake_gpu.push;
}
int cuCtxPopCurrent_v2(void**) {
    ++fake_gpu.popped;
    return 0;
}
int cuStreamSynchronize(void*) {
    return fake_gpu.synchronize;
}
#ifndef FAKE_LACKS
int cuMemcpy(std::uint64_t, std::uint64_t, std::size_t) {
    ++fake_gpu.copied;
    return fake_gpu.copy;
}
#endif

#elif defined(FAKE_ROCM)

struct Attributes {
    int type, device;
    void *device_address, *host_address;
    int is_managed;
};
int hipPointerGetAttributes(Attributes* found, const void* address) {
    found->type = address == fake_gpu.memory ? static_cast<int>(fake_gpu.type) : 0;
    found->is_managed = fake_gpu.managed;
    return fake_gpu.attributes;
}
int hipRuntimeGetVersion(int* version) {
    *version = fake_gpu.version;
    return fake_gpu.version_call;
}
int hipGetLastError() {
    ++fake_gpu.errors_forgotten;
    return 0;
}
#ifndef FAKE_LACKS
int hipMemcpy(void*, const void*, std::size_t, int) {
    ++fake_gpu.copied;
    return fake_gpu.copy;
}
#endif

#else

struct Properties {
    int structure;
    void* next;
    int type;
};
int zeInit(std::uint32_t) {
    return fake_gpu.init;
}
int zeDriverGet(std::uint32_t* count, void** drivers) {
    *count = fake_gpu.driver_count;
    for (std::uint32_t i = 0; drivers != nullptr && i < *count; ++i)
        drivers[i] = &fake_gpu;
    return fake_gpu.drivers;
}
int zeContextCreate(void*, const void*, void** context) {
    *context = &fake_gpu;
    return fake_gpu.contexts;
}
int zeMemGetAllocProperties(void*, const void* address, Properties* found, void** device) {
    found->type = address == fake_gpu.memory ? static_cast<int>(fake_gpu.type) : 0;
    *device = &fake_gpu;
    return fake_gpu.attributes;
}
int zeCommandListCreateImmediate(void*, void*, const void*, void** list) {
    fake_gpu.lists_made += fake_gpu.lists == 0 ? 1 : 0;
    *list = &fake_gpu;
    return fake_gpu.lists;
}
#ifndef FAKE_LACKS
int zeCommandListAppendMemoryCopy(void*, void*, const void*, std::size_t, void*, std::uint32_t, void*) {
    ++fake_gpu.copied;
    return fake_gpu.copy;
}
#endif
#endif
}
#pragma GCC visibility pop
