// Runs the kernels of runtime_kernels.h and runtime_eam_kernels.h on a device, one after the other in the
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
    int threads = 1, slowness = 1;  // the device's threads, and how many times it computes everything
    LjParameters parameters;        // of Lennard-Jones forces
};

enum class Kernel { lists, forces, eam_table, eam_densities, eam_forces };
constexpr std::size_t kernel_count = 5;

class KernelRunner : public DeviceHeap {
  public:
    // Names a kernel that was started; 0 names none.
    using Ticket = std::uintptr_t;

    // Whether kernels read and write this heap's memory in place. Otherwise they get copies.
    virtual bool in_place() const = 0;

    // Starts a kernel and sets `ticket`. Afterwards `arguments` may change, but the buffers must stay until
    // the kernel's end. Returns false if the device is lost, and `ticket` is unchanged then.
    virtual bool start(Kernel kernel, const void* arguments, std::size_t bytes,
                       std::span<const offpath_kernel_buffer_t> buffers, Ticket& ticket) = 0;
    virtual bool running(Ticket ticket) = 0;
    // Waits until the kernel of `ticket`, if any, has ended, and sets `ticket` to 0. Returns false if the
    // kernel failed.
    virtual bool settle(Ticket& ticket) = 0;
};

}  // namespace minimd
