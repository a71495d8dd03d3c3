// A device that is reached through offpath's runtime: the daemon of this node, or a device with an operating
// system of its own. It runs the kernels of libminimd-kernels.so (runtime_kernels.h).
//
// Positions, forces and lists are put into memory of offpath_mem_alloc, which a device that shares memory
// with this host reads and writes where it is; others get copies, and keep the lists.
//
// Kernels cannot communicate, so this host brings the device the ghosts of a share with a boundary, and takes
// the forces on them. Such a share is three kernels, one behind the other: half of the interior rows, those
// with ghosts, and the rest. The first is for the time that ghosts take to come, the last for the time that
// forces take home.
#pragma once

#include <mpi.h>
#include <offpath/offpath.h>

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "minimd/offpath/device.h"
#include "minimd/offpath/runtime_context.h"
#include "minimd/offpath/runtime_kernels.h"

namespace minimd {

// This process attached to its device, with the kernels loaded.
class RuntimeAttachment {
  public:
    // Collective. Throws mpi_support::UsageError on all ranks alike if one of them cannot have its device.
    RuntimeAttachment(MPI_Comm comm, const runtime::Numbers& numbers);

    offpath_context_h context() const { return context_.handle(); }
    offpath_kernel_h lists() const { return lists_; }
    offpath_kernel_h forces() const { return forces_; }

  private:
    RuntimeContext context_;
    offpath_kernel_h lists_ = nullptr, forces_ = nullptr;
};

// Memory that the device reaches best. Grows and never shrinks.
class RuntimeMemory {
  public:
    explicit RuntimeMemory(offpath_context_h context) : context_(context) {}
    ~RuntimeMemory();
    RuntimeMemory(const RuntimeMemory&) = delete;
    RuntimeMemory& operator=(const RuntimeMemory&) = delete;

    // Loses what is there. False: the device is lost, or there is no memory. Nothing may use it.
    bool reserve(std::size_t bytes);
    offpath_status_t status() const { return status_; }  // of the last that had to ask for more
    void* data() const { return data_; }
    // Does the device read and write it where it is?
    bool in_place() const;
    offpath_kernel_buffer_t buffer(std::size_t bytes, offpath_access_t access) const {
        return {data_, bytes, access};
    }

  private:
    offpath_context_h context_;
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
    offpath_status_t status_ = OFFPATH_OK;
};

struct RuntimeSettings {
    int lanes = 0;                  // of the lists' blocks
    int threads = 1, slowness = 1;  // of the device; everything is computed so many times
    LjParameters parameters;
};

template <typename Real>
class RuntimeDevice final : public Device<Real> {
  public:
    // Collective over `comm`. Throws as RuntimeAttachment.
    RuntimeDevice(MPI_Comm comm, const RuntimeSettings& settings);
    ~RuntimeDevice() override;

    GhostMover ghost_mover() const override { return GhostMover::hosts; }
    bool lists_ahead() const override { return true; }
    void set_lists(const Particles<Real>& particles, Neighborhood<Real>& neighborhood) override;
    void start(const Particles<Real>& particles, const Share& share) override;
    void take_ghosts(const Particles<Real>& particles) override;
    const Real* ghost_forces(bool wait) override;
    std::optional<typename Device<Real>::Outcome> finish() override;

  private:
    using Clock = std::chrono::steady_clock;

    // All of the host's as one: every interior row, then those that need ghosts.
    struct Lists {
        explicit Lists(offpath_context_h context) : rows(context), blocks(context) {}
        RuntimeMemory rows, blocks;
        std::size_t row_bytes = 0, block_bytes = 0;
        std::vector<std::int32_t> ends;  // of each interior list
        std::int32_t all_rows = 0;
        offpath_request_h keeping = nullptr;
    };

    // Waits for the request and gives it back. False: it ended with an error.
    static bool settle(offpath_request_h& request);
    bool fill(Lists& lists, const std::vector<PairLists>& from);
    void launch(runtime::Part part, bool both_sides);

    runtime::ForceArguments arguments_;
    RuntimeAttachment attachment_;
    RuntimeMemory x_, f_, answers_;
    std::array<Lists, 2> lists_;  // in turn, since the next may be set while these are used
    std::size_t latest_ = 0, in_use_ = 0;
    bool interior_both_sides_ = true, boundary_both_sides_ = true;
    std::vector<runtime::RowRange> rest_;  // for the last part
    std::size_t own_reals_ = 0, reals_ = 0;
    bool in_place_ = false, lost_ = false;
    std::array<offpath_request_h, 3> parts_{};
    Clock::time_point started_;
    double latency_ = 0.0;  // from start() to the first part, and from the last one to finish()
};

}  // namespace minimd
