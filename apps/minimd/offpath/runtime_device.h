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
#include <vector>

#include "minimd/offpath/device.h"
#include "minimd/offpath/runtime_attachment.h"
#include "minimd/offpath/runtime_kernels.h"

namespace minimd {

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

    void launch(runtime::Part part, bool both_sides);

    runtime::ForceArguments arguments_;
    RuntimeAttachment attachment_;
    RuntimeMemory x_, f_, answers_;
    std::array<RuntimeLists, 2> lists_;  // in turn, since the next may be set while these are used
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
