// Runs a device's kernels in OpenMP target regions (target_regions.h), on an offpath device or on any other
// device that libomptarget finds.
//
// A thread of this class runs the regions one after the other, so that the program continues meanwhile. The
// thread sleeps when there are none. This heap's memory is MPI's. A device that can map it shares it; others
// have a copy, which regions update. If
// the device is lost, the process ends, because libomptarget knows no other way.
#pragma once

#include <mpi.h>

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "minimd/offpath/kernel_runner.h"
#include "minimd/offpath/runtime_kernels.h"
#include "minimd/offpath/target_regions.h"

namespace minimd {

class TargetRunner final : public KernelRunner {
  public:
    // Collective. Throws mpi_support::UsageError on all ranks if one of them cannot have its device.
    TargetRunner(MPI_Comm comm, const runtime::Numbers& numbers);
    ~TargetRunner() override;
    TargetRunner(const TargetRunner&) = delete;
    TargetRunner& operator=(const TargetRunner&) = delete;

    offpath_status_t allocate(std::size_t bytes, void** data) override;
    void release(void* data) override;
    bool in_place() const override { return false; }
    bool start(Kernel kernel, const void* arguments, std::size_t bytes,
               std::span<const offpath_kernel_buffer_t> buffers, Ticket& ticket) override;
    bool running(Ticket ticket) override;
    bool settle(Ticket& ticket) override;

  private:
    using Region = minimd_target_region*;
    struct Job {
        Region region;
        std::vector<std::byte> arguments;
        target::Operands operands;
    };

    // Loads the library. Returns the reason if this rank cannot use it, or an empty string.
    std::string load(const runtime::Numbers& numbers);
    void work();

    decltype(&minimd_target_enter) enter_ = nullptr;
    decltype(&minimd_target_exit) exit_ = nullptr;
    std::array<Region, kernel_count> regions_{};
    struct Allocation {
        void* begin = nullptr;  // of what MPI gave
        std::size_t bytes = 0;
    };
    std::map<void*, Allocation> memory_;

    std::mutex mutex_;
    std::condition_variable more_, done_;
    std::deque<Job> jobs_;
    Ticket started_ = 0, ended_ = 0;  // numbers of jobs
    std::vector<Ticket> failed_;
    bool over_ = false;
    std::thread thread_;
};

}  // namespace minimd
