// A device that computes forces of the embedded-atom method by kernels (kernel_runner.h).
//
// The table of pairs goes to the device once. Positions and lists go as in kernel_device.h. The host has work
// to do between densities and forces. So a step is: the densities of the interior pairs; those of the pairs
// with ghosts, queued when the ghosts have arrived; and all forces, when the host has the derivatives.
#pragma once

#include <array>
#include <memory>

#include "minimd/kernels/eam.h"
#include "minimd/offpath/device.h"
#include "minimd/offpath/kernel_latency.h"
#include "minimd/offpath/kernel_lists.h"
#include "minimd/offpath/runtime_eam_kernels.h"

namespace minimd {

template <typename Real>
class EamKernelDevice final : public Device<Real> {
  public:
    EamKernelDevice(std::unique_ptr<KernelRunner> runner, const KernelSettings& settings,
                    const EamTable<Real>& table);
    ~EamKernelDevice() override;

    GhostMover ghost_mover() const override { return GhostMover::hosts; }
    bool takes_undivided() const override { return true; }
    void set_lists(const Particles<Real>& particles, Neighborhood<Real>& neighborhood) override;
    bool takes_parts() const override { return true; }
    void start(const Particles<Real>& particles, const Share& share) override;
    void take_ghosts(const Particles<Real>& particles) override;
    const Real* densities() override;
    std::int32_t first_slot() const override { return arguments_.first_slot; }
    void take_derivatives(std::span<const Real> derivatives) override;
    const Real* ghost_forces(bool wait) override;
    std::optional<typename Device<Real>::Outcome> finish() override;

  private:
    bool reserve(const Particles<Real>& particles);
    bool send_table(const EamTable<Real>& table);
    runtime::ForceAnswer answer(std::size_t part) const;
    // Starts the kernel of a part. `buffers` are those after the answer.
    void launch(std::size_t part, std::initializer_list<offpath_kernel_buffer_t> buffers);
    offpath_kernel_buffer_t some(const DeviceMemory& memory, std::size_t first, std::size_t end,
                                 offpath_access_t access) const;

    runtime::EamArguments arguments_;
    std::unique_ptr<KernelRunner> runner_;
    DeviceMemory x_, density_, derivative_, f_, answers_;
    KernelLists lists_;
    bool lost_ = false;
    std::array<KernelRunner::Ticket, 3> parts_{};
    KernelLatency way_, way_of_forces_;
};

}  // namespace minimd
