// A device of offpath's runtime (runtime_device.h) that computes forces of the embedded-atom method, all of
// them, by the kernels of runtime_eam_kernels.h.
//
// The table of pairs goes to the device once, positions and lists as in runtime_device.h. The host is between
// densities and forces, so a step is: densities of the interior pairs, and, queued behind them when ghosts
// have come, of those with ghosts; then, when the host has the derivatives, all forces.
#pragma once

#include <mpi.h>
#include <offpath/offpath.h>

#include <array>
#include <chrono>

#include "minimd/kernels/eam.h"
#include "minimd/offpath/device.h"
#include "minimd/offpath/runtime_attachment.h"
#include "minimd/offpath/runtime_eam_kernels.h"

namespace minimd {

template <typename Real>
class RuntimeEamDevice final : public Device<Real> {
  public:
    // Collective over `comm`. Throws as RuntimeAttachment.
    RuntimeEamDevice(MPI_Comm comm, const RuntimeSettings& settings, const EamTable<Real>& table);
    ~RuntimeEamDevice() override;

    GhostMover ghost_mover() const override { return GhostMover::hosts; }
    bool takes_undivided() const override { return true; }
    void set_lists(const Particles<Real>& particles, Neighborhood<Real>& neighborhood) override;
    // The share is all pairs.
    void start(const Particles<Real>& particles, const Share& share) override;
    void take_ghosts(const Particles<Real>& particles) override;
    Real* densities() override;
    void take_derivatives(std::span<const Real> derivatives) override;
    const Real* ghost_forces(bool wait) override;
    std::optional<typename Device<Real>::Outcome> finish() override;

  private:
    using Clock = std::chrono::steady_clock;

    bool reserve(const Particles<Real>& particles);
    bool send_table(const EamTable<Real>& table);
    // The buffers besides the answer.
    void launch(std::size_t part, std::initializer_list<offpath_kernel_buffer_t> buffers);
    offpath_kernel_buffer_t some(const RuntimeMemory& memory, std::size_t first, std::size_t end,
                                 offpath_access_t access) const;

    runtime::EamArguments arguments_;
    RuntimeAttachment attachment_;
    RuntimeMemory x_, density_, derivative_, f_, answers_;
    RuntimeLists lists_;
    bool in_place_ = false, lost_ = false;
    std::array<offpath_request_h, 3> parts_{};
    Clock::time_point started_;
};

}  // namespace minimd
