// The target regions of libminimd-target.so. Before a region, its operands are copied to the device; after
// it, results are copied back. Memory that minimd_target_enter has announced stays on the device from region
// to region.
#include "minimd/offpath/target_regions.h"

#include <offpath/compute.h>
#include <omp.h>

#include <type_traits>

#include "minimd/offpath/runtime_kernels.h"

#define MINIMD_EXPORT __attribute__((visibility("default")))

// GCC compiles these kernels. They are linked into the device's image and into this library.
#pragma omp begin declare target
extern "C" std::remove_pointer_t<offpath_kernel_fn> minimd_check, minimd_lists, minimd_forces,
    minimd_eam_table, minimd_eam_densities, minimd_eam_forces;
#pragma omp end declare target

namespace {

using minimd::target::Bytes;
using minimd::target::Operands;

// The buffers that a kernel gets in the region.
struct Buffers {
    void* data[4];
    std::size_t bytes[4];
    std::size_t count = 0;

    void add(bool there, void* buffer, std::size_t count_of_bytes) {
        if (!there) return;
        data[count] = buffer;
        bytes[count++] = count_of_bytes;
    }
};

template <auto kernel>
int run(const Operands& operands) {
    const auto [arguments, answer, in, more_in, out] = operands;
    auto* a = static_cast<char*>(arguments.data);
    auto* s = static_cast<char*>(answer.data);
    auto* i = static_cast<char*>(in.data);
    auto* m = static_cast<char*>(more_in.data);
    auto* o = static_cast<char*>(out.data);
    const std::size_t a_bytes = arguments.count, s_bytes = answer.count, i_bytes = in.count,
                      m_bytes = more_in.count, o_bytes = out.count;
    // In the region, the address of an empty operand may be null.
    const bool has_s = s != nullptr, has_i = i != nullptr, has_m = m != nullptr, has_o = o != nullptr;
    int status = OFFPATH_ERR_INVALID;
#pragma omp target map(always, to : a[0 : a_bytes], i[0 : i_bytes], m[0 : m_bytes]) \
    map(always, from : s[0 : s_bytes], o[0 : o_bytes]) map(from : status)
    {
        Buffers buffers;
        buffers.add(has_s, s, s_bytes);
        buffers.add(has_i, i, i_bytes);
        buffers.add(has_m, m, m_bytes);
        buffers.add(has_o, o, o_bytes);
        status = kernel(a, a_bytes, buffers.data, buffers.bytes, buffers.count);
    }
    return status;
}

}  // namespace

extern "C" {

MINIMD_EXPORT int minimd_target_check(std::int32_t real_bytes, std::int32_t lanes) {
    int status = OFFPATH_ERR_INVALID;
#pragma omp target map(from : status)
    {
        const minimd::runtime::Numbers numbers{real_bytes, lanes};
        status = omp_is_initial_device() != 0 ? minimd::target::no_device
                                              : minimd_check(&numbers, sizeof numbers, nullptr, nullptr, 0);
    }
    return status;
}

MINIMD_EXPORT void minimd_target_enter(void* data, std::size_t bytes) {
    auto* memory = static_cast<char*>(data);
#pragma omp target enter data map(alloc : memory[0 : bytes])
}

MINIMD_EXPORT void minimd_target_exit(void* data, std::size_t bytes) {
    auto* memory = static_cast<char*>(data);
#pragma omp target exit data map(delete : memory[0 : bytes])
}

MINIMD_EXPORT int minimd_target_lists(const Operands& operands) {
    return run<minimd_lists>(operands);
}
MINIMD_EXPORT int minimd_target_forces(const Operands& operands) {
    return run<minimd_forces>(operands);
}
MINIMD_EXPORT int minimd_target_eam_table(const Operands& operands) {
    return run<minimd_eam_table>(operands);
}
MINIMD_EXPORT int minimd_target_eam_densities(const Operands& operands) {
    return run<minimd_eam_densities>(operands);
}
MINIMD_EXPORT int minimd_target_eam_forces(const Operands& operands) {
    return run<minimd_eam_forces>(operands);
}
}
