// libminimd-target.so: the kernels of runtime_kernels.h and runtime_eam_kernels.h in OpenMP target regions.
//
// clang compiles this library. GCC may compile everything else. minimd loads the library when a run asks for
// it (target_runner.h), so other runs do not need LLVM's libraries. Any thread may call these functions, one
// at a time. If a region fails, LLVM prints a message and ends the process.
#pragma once

#include <cstddef>
#include <cstdint>

namespace minimd::target {

constexpr const char* library_name = "libminimd-target.so";

struct Bytes {
    void* data = nullptr;
    std::size_t count = 0;
};

// The buffers of a kernel, in the order in which it gets them. Those without data are left out.
struct Operands {
    Bytes arguments;
    Bytes answer;
    Bytes in, more_in;
    Bytes out;
};

// minimd_target_check returns this if regions run on the host.
constexpr int no_device = 1;

}  // namespace minimd::target

extern "C" {

// Returns 0 if a device runs regions and has kernels for these numbers and lanes. Otherwise returns no_device
// or an offpath_status_t.
int minimd_target_check(std::int32_t real_bytes, std::int32_t lanes);

// The device has memory for these bytes between enter and exit.
void minimd_target_enter(void* data, std::size_t bytes);
void minimd_target_exit(void* data, std::size_t bytes);

// Each function runs one kernel and waits for its end. Returns 0 or an offpath_status_t.
using minimd_target_region = int(const minimd::target::Operands&);
minimd_target_region minimd_target_lists, minimd_target_forces, minimd_target_eam_table,
    minimd_target_eam_densities, minimd_target_eam_forces;
}
