// The steps of a run in which a device takes part.
//
// `paper`: in steps with a rebuild, the device computes all forces on the old lists while the host
// re-neighbours (section IV of "Smarter NICs for faster molecular dynamics", IPDPS 2022). In other steps the
// device idles. `balanced`: in every step the device takes such a share that host and device finish at the
// same time. In rebuild steps the share includes the pairs that need ghosts. In other steps it does so if the
// devices move ghosts themselves. `split`: in every step, the device computes the pairs that need ghosts. If
// a device is lost, the host computes its share, and the run continues without it.
//
// Where hosts move the ghosts of rebuild steps for their devices (device.h), all ranks use the halo of before
// the rebuild. A rank that has lost its device does the same, so other ranks see no difference.
//
// `balanced` tries now and then whether hosts alone are faster, and if so, leaves all forces to them
// (trial.h).
//
// Forces that are not divisible go to the device as a whole, in rebuild steps. `balanced` leaves them on the
// host from the start if that was measured to be faster. Devices that compute such forces with the help of
// hosts may also take parts: see eam_offload.h.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>

#include "minimd/base/results.h"
#include "minimd/base/settings.h"
#include "minimd/base/stopwatch.h"
#include "minimd/dynamics/forces.h"
#include "minimd/dynamics/neighborhood.h"
#include "minimd/dynamics/step_partner.h"
#include "minimd/offpath/balance.h"
#include "minimd/offpath/device.h"
#include "minimd/offpath/eam_offload.h"
#include "minimd/offpath/trial.h"

namespace minimd {

template <typename Real>
class Offload final : public StepPartner<Real> {
  public:
    // `comm` is the communicator of the hosts, over which all functions are collective unless stated
    // otherwise. Throws std::invalid_argument if the device cannot compute such forces.
    Offload(const Settings& settings, Forces<Real>& forces, std::unique_ptr<Device<Real>> device,
            MPI_Comm comm);

    // Measures host and device on the lists that the device has, for the first shares.
    void calibrate(Particles<Real>& particles, Neighborhood<Real>& neighborhood,
                   double rebuild_seconds) override;

    void lists_changed(const Particles<Real>& particles, Neighborhood<Real>& neighborhood) override {
        if (!device_ || !trial_.next()) return;
        const Stopwatch watch;
        device_->set_lists(particles, neighborhood);
        shared_.starting += watch.seconds();
    }

    // Whether the next rebuild step goes through rebuild(). A rank without a device computes the forces
    // itself, but it exchanges the messages that other ranks expect.
    bool rebuilds() const override { return settings_.offpath != OffPath::none && trial_.now(); }

    EnergyVirial rebuild(Particles<Real>& particles, Neighborhood<Real>& neighborhood, std::int64_t step,
                         bool energy, Times& times) override;
    void rebuilt(double seconds, Neighborhood<Real>& neighborhood) override;
    EnergyVirial ordinary(Particles<Real>& particles, Neighborhood<Real>& neighborhood, bool fresh,
                          bool energy, Times& times) override;

    double calls() const override { return old_halo_ ? old_halo_->calls() : 0.0; }
    SharedTimes shared_times() const override { return shared_; }
    std::int64_t shared_blocks() const override { return shared_blocks_; }
    std::int64_t device_blocks() const override { return device_blocks_; }

  private:
    using RowNumbers = std::vector<std::int32_t>;  // by list
    RowNumbers first_rows(const std::vector<PairLists>& lists, double share) const;
    // The host computes its interior rows from begin[t] to end[t] of each list t.
    EnergyVirial host_rows(const Neighborhood<Real>& neighborhood, const Real* x,
                           const std::vector<PairLists>& lists, const RowNumbers& begin,
                           const RowNumbers& end, bool energy, AlignedVector<Real>& f);
    EnergyVirial boundary_rows(const Neighborhood<Real>& neighborhood, const Real* x,
                               const std::vector<PairLists>& lists, bool energy, AlignedVector<Real>& f);
    void take_ghosts_home(Neighborhood<Real>& neighborhood, Real* f);
    // Decides whether rebuild steps are faster with all forces on the devices, which need `device` seconds.
    void weigh(Particles<Real>& particles, Neighborhood<Real>& neighborhood, double device);
    // An ordinary step of EAM with a device.
    EnergyVirial ordinary_eam(Particles<Real>& particles, Neighborhood<Real>& neighborhood, bool fresh,
                              bool energy, Times& times);
    void calibrate_eam(Particles<Real>& particles, Neighborhood<Real>& neighborhood);
    // Finishes a rebuild step that began at `started`, after its rebuild.
    EnergyVirial finish_eam(Particles<Real>& particles, Neighborhood<Real>& neighborhood, const Share& share,
                            const Stopwatch& started, Times& times);
    // Records a step of eam_ that took `seconds`. The host computed the first `own` interior blocks.
    void account_eam(Balance& balance, std::size_t own, double seconds);
    // Records the blocks of pairs in a step (`all`), and those that the device computed (`devices`).
    void account(Balance& balance, std::size_t all, std::size_t devices,
                 const typename Device<Real>::Outcome& outcome);
    // The state of the old pairs that need ghosts, during a rebuild.
    struct Boundary {
        EnergyVirial sum;         // of the pairs that the host computed
        bool by_host = false;     // whether the host computed the forces on ghosts
        bool going_home = false;  // whether the forces on ghosts have been sent
    };
    // Sends the forces on ghosts home. They are the device's, if these are complete or `wait`. If there is no
    // device any more, the host computes them first.
    void send_home(Neighborhood<Real>& neighborhood, bool energy, bool wait, Boundary& boundary);
    // The host computes the share of a device that is lost.
    EnergyVirial instead_of_device(Neighborhood<Real>& neighborhood, const Share& share, bool energy,
                                   Boundary& boundary);
    bool balances() const { return settings_.offpath == OffPath::balanced && settings_.device_share < 0.0; }
    void lose_device();

    const Settings& settings_;
    Forces<Real>& forces_;
    LennardJonesForces<Real>* divisible_;    // `forces_`, if it can compute parts of the pairs; else null
    bool hosts_move_ghosts_;                 // in rebuild steps
    bool shares_;                            // whether the device may take parts of the pairs
    std::unique_ptr<EamOffload<Real>> eam_;  // for EAM forces if hosts move ghosts; else null
    MPI_Comm comm_;
    std::unique_ptr<Device<Real>> device_;
    Balance in_rebuilds_{settings_.device_share}, in_others_{settings_.device_share};
    SharedTimes shared_;
    std::int64_t shared_blocks_ = 0, device_blocks_ = 0;
    Trial trial_{balances() && settings_.device_trials};
    double rebuild_seconds_ = 0.0;
    std::size_t old_own_reals_ = 0;
    AlignedVector<Real> old_f_, spare_f_;
    std::unique_ptr<Halo<Real>> old_halo_;  // the halo of before the rebuild
    std::vector<std::int32_t> old_plan_;
};

}  // namespace minimd
