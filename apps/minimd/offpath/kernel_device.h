// A device that computes Lennard-Jones forces by kernels (kernel_runner.h).
//
// Positions, forces and lists are in the runner's memory. A device that shares memory with this host may read
// and write them in place. Other devices get copies, and keep the lists.
//
// Kernels cannot communicate. So for a share with a boundary, this host moves the ghosts to the device and
// the forces on them away. Such a share is three kernels in a row: half of the interior rows, the rows with
// ghosts, and the rest. The first runs while the ghosts arrive, the last while the forces on ghosts travel
// home.
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
    std::array<KernelLists, 2>
        lists_;  // used in turn, since the next lists may be set while these are in use
    std::size_t latest_ = 0, in_use_ = 0;
    bool interior_both_sides_ = true, boundary_both_sides_ = true;
    std::vector<runtime::RowRange> rest_;  // interior rows of the last part
    std::size_t first_real_ = 0, own_reals_ = 0, reals_ = 0;
    bool lost_ = false;
    std::array<KernelRunner::Ticket, 3> parts_{};
    KernelLatency way_;
};

}  // namespace minimd
