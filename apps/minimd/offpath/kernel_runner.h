// Where a device runs the kernels of runtime_kernels.h and runtime_eam_kernels.h, one after the other in the
// order of their start. One thread starts them and asks for their ends. Implementations: runtime_runner.h
// (offpath's kernels), target_runner.h (OpenMP target regions).
#pragma once

#include <offpath/compute.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "minimd/kernels/kernels.h"
#include "minimd/offpath/device_memory.h"

namespace minimd {

struct KernelSettings {
    int lanes = 0;                  // of the lists' blocks
    int threads = 1, slowness = 1;  // of the device; everything is computed so many times
    LjParameters parameters;        // of Lennard-Jones forces
};

enum class Kernel { lists, forces, eam_table, eam_densities, eam_forces };
constexpr std::size_t kernel_count = 5;

class KernelRunner : public DeviceHeap {
  public:
    // What was started; 0: nothing.
    using Ticket = std::uintptr_t;

    // Do kernels read and write memory of this heap where it is? Else they get copies.
    virtual bool in_place() const = 0;

    // False: the device is lost, and `ticket` is unchanged. The arguments may change afterwards; buffers stay
    // until the end.
    virtual bool start(Kernel kernel, const void* arguments, std::size_t bytes,
                       std::span<const offpath_kernel_buffer_t> buffers, Ticket& ticket) = 0;
    virtual bool running(Ticket ticket) = 0;
    // Waits for the end, if there is anything to wait for, and takes the ticket back. False: it failed.
    virtual bool settle(Ticket& ticket) = 0;
};

}  // namespace minimd
