// A device that computes Lennard-Jones forces by kernels (kernel_runner.h).
//
// Positions, forces and lists are put into the runner's memory, which a device that shares memory with this
// host may read and write where it is; others get copies, and keep the lists.
//
// Kernels cannot communicate, so this host brings the device the ghosts of a share with a boundary, and takes
// the forces on them. Such a share is three kernels, one behind the other: half of the interior rows, those
// with ghosts, and the rest. The first is for the time that ghosts take to come, the last for the time that
// forces take home.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "minimd/offpath/device.h"
#include "minimd/offpath/kernel_latency.h"
#include "minimd/offpath/kernel_lists.h"
#include "minimd/offpath/runtime_kernels.h"

namespace minimd {

template <typename Real>
class KernelDevice final : public Device<Real> {
  public:
    KernelDevice(std::unique_ptr<KernelRunner> runner, const KernelSettings& settings);
    ~KernelDevice() override;

    GhostMover ghost_mover() const override { return GhostMover::hosts; }
    bool lists_ahead() const override { return true; }
    void set_lists(const Particles<Real>& particles, Neighborhood<Real>& neighborhood) override;
    void start(const Particles<Real>& particles, const Share& share) override;
    void take_ghosts(const Particles<Real>& particles) override;
    const Real* ghost_forces(bool wait) override;
    std::optional<typename Device<Real>::Outcome> finish() override;

  private:
    void launch(runtime::Part part, bool both_sides);

    runtime::ForceArguments arguments_;
    std::unique_ptr<KernelRunner> runner_;
    DeviceMemory x_, f_, answers_;
    std::array<KernelLists, 2> lists_;  // in turn, since the next may be set while these are used
    std::size_t latest_ = 0, in_use_ = 0;
    bool interior_both_sides_ = true, boundary_both_sides_ = true;
    std::vector<runtime::RowRange> rest_;  // for the last part
    std::size_t first_real_ = 0, own_reals_ = 0, reals_ = 0;
    bool lost_ = false;
    std::array<KernelRunner::Ticket, 3> parts_{};
    KernelLatency way_;
};

}  // namespace minimd
