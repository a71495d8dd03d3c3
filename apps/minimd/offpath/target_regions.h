// libminimd-target.so: the kernels of runtime_kernels.h and runtime_eam_kernels.h in OpenMP target regions.
//
// clang makes this library, everything else may be GCC's. minimd loads it when a run asks for it
// (target_runner.h), so that other runs do not need LLVM's libraries. Any thread may call these functions,
// one at a time. A region that fails ends the process, with a message of LLVM's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace minimd::target {

constexpr const char* library_name = "libminimd-target.so";

struct Bytes {
    void* data = nullptr;
    std::size_t count = 0;
};

// What a kernel is given, in the order of its buffers. Those without data are left out.
struct Operands {
    Bytes arguments;
    Bytes answer;
    Bytes in, more_in;
    Bytes out;
};

// What minimd_target_check returns where regions run on the host.
constexpr int no_device = 1;

}  // namespace minimd::target

extern "C" {

// 0: a device runs regions, and has kernels for such numbers. Else no_device, or an offpath_status_t.
int minimd_target_check(std::int32_t real_bytes, std::int32_t lanes);

// From here on the device has memory for these bytes; and no more.
void minimd_target_enter(void* data, std::size_t bytes);
void minimd_target_exit(void* data, std::size_t bytes);

// Each waits for its end. 0, or an offpath_status_t.
using minimd_target_region = int(const minimd::target::Operands&);
minimd_target_region minimd_target_lists, minimd_target_forces, minimd_target_eam_table,
    minimd_target_eam_densities, minimd_target_eam_forces;
}
