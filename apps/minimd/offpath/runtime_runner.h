// Runs a device's kernels through offpath's runtime. The kernels are those of libminimd-kernels.so. They run
// in a process beside the daemon of this node, or on a device with an operating system of its own.
#pragma once

#include <mpi.h>
#include <offpath/offpath.h>

#include <array>

#include "minimd/offpath/kernel_runner.h"
#include "minimd/offpath/runtime_context.h"
#include "minimd/offpath/runtime_kernels.h"

namespace minimd {

class RuntimeRunner final : public KernelRunner {
  public:
    // Collective. Throws mpi_support::UsageError on all ranks if one of them cannot have its device.
    RuntimeRunner(MPI_Comm comm, const runtime::Numbers& numbers);

    offpath_status_t allocate(std::size_t bytes, void** data) override {
        return context_.allocate(bytes, data);
    }
    void release(void* data) override { context_.release(data); }
    bool in_place() const override { return in_place_; }
    bool start(Kernel kernel, const void* arguments, std::size_t bytes,
               std::span<const offpath_kernel_buffer_t> buffers, Ticket& ticket) override;
    bool running(Ticket ticket) override;
    bool settle(Ticket& ticket) override;

  private:
    bool maps_memory();

    RuntimeContext context_;
    std::array<offpath_kernel_h, kernel_count> kernels_{};
    bool in_place_ = false;
};

}  // namespace minimd
