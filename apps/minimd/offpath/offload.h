// The steps of a run in which a device takes part.
//
// `paper`: while the host re-neighbours, the device computes all forces on the lists of before (section IV of
// "Smarter NICs for faster molecular dynamics", IPDPS 2022); in other steps it idles. `balanced`: in every
// step it takes as much as makes both finish together, with the ghosts. `split`: it computes the pairs that
// need ghosts, in every step. A device that is lost leaves its share to the host, and the run goes on without
// it.
//
// Where hosts move the ghosts of rebuild steps for their devices (device.h), they do so by the halo of before
// the rebuild, on all ranks alike, so that a rank without its device differs from the others by nothing that
// these could see.
//
// `balanced` tries now and then whether hosts alone are faster, and then leaves all to them (trial.h).
//
// Forces that are not divisible go to the device as a whole, in rebuild steps; `balanced` leaves them with
// the host from the start where that was found to be faster. Devices that compute them with the hosts' help
// may take parts as well: eam_offload.h.
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
    // Collective over `comm`, that of the hosts, as all of it. Throws std::invalid_argument for a device that
    // cannot compute such forces.
    Offload(const Settings& settings, Forces<Real>& forces, std::unique_ptr<Device<Real>> device,
            MPI_Comm comm);

    // Tries both sides out on the lists that the device was given, for the first shares.
    void calibrate(Particles<Real>& particles, Neighborhood<Real>& neighborhood,
                   double rebuild_seconds) override;

    void lists_changed(const Particles<Real>& particles, Neighborhood<Real>& neighborhood) override {
        if (!device_ || !trial_.next()) return;
        const Stopwatch watch;
        device_->set_lists(particles, neighborhood);
        shared_.starting += watch.seconds();
    }

    // Do rebuild steps go off the path? A rank that has lost its device computes its forces itself, but where
    // the others expect them.
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
    // The host's interior rows from begin[t] to end[t].
    EnergyVirial host_rows(const Neighborhood<Real>& neighborhood, const Real* x,
                           const std::vector<PairLists>& lists, const RowNumbers& begin,
                           const RowNumbers& end, bool energy, AlignedVector<Real>& f);
    EnergyVirial boundary_rows(const Neighborhood<Real>& neighborhood, const Real* x,
                               const std::vector<PairLists>& lists, bool energy, AlignedVector<Real>& f);
    void take_ghosts_home(Neighborhood<Real>& neighborhood, Real* f);
    // Are rebuild steps faster with all forces on the devices, which take `device` seconds?
    void weigh(Particles<Real>& particles, Neighborhood<Real>& neighborhood, double device);
    // Of an ordinary step of EAM with a device.
    EnergyVirial ordinary_eam(Particles<Real>& particles, Neighborhood<Real>& neighborhood, bool fresh,
                              bool energy, Times& times);
    void calibrate_eam(Particles<Real>& particles, Neighborhood<Real>& neighborhood);
    // The rest of rebuild() when it has rebuilt, `started` before.
    EnergyVirial finish_eam(Particles<Real>& particles, Neighborhood<Real>& neighborhood, const Share& share,
                            const Stopwatch& started, Times& times);
    // After a step of eam_, `seconds` long, of a share with `own` interior blocks of the host's.
    void account_eam(Balance& balance, std::size_t own, double seconds);
    // Blocks of pairs of the step, and those that the device computed.
    void account(Balance& balance, std::size_t all, std::size_t devices,
                 const typename Device<Real>::Outcome& outcome);
    // While a rebuild is under way, for the old pairs that need ghosts.
    struct Boundary {
        EnergyVirial sum;         // of what the host computed
        bool by_host = false;     // it computed them
        bool going_home = false;  // forces on ghosts
    };
    // Sends forces on ghosts home: the device's, if they are there or `wait`; else, if there is no device any
    // more, those that the host then computes.
    void send_home(Neighborhood<Real>& neighborhood, bool energy, bool wait, Boundary& boundary);
    // The host computes what the device should have.
    EnergyVirial instead_of_device(Neighborhood<Real>& neighborhood, const Share& share, bool energy,
                                   Boundary& boundary);
    bool balances() const { return settings_.offpath == OffPath::balanced && settings_.device_share < 0.0; }
    void lose_device();

    const Settings& settings_;
    Forces<Real>& forces_;
    LennardJonesForces<Real>* divisible_;    // the same, if parts of the pairs can be computed apart
    bool hosts_move_ghosts_;                 // in rebuild steps
    bool shares_;                            // the device may take parts of the pairs
    std::unique_ptr<EamOffload<Real>> eam_;  // where they do for such forces
    MPI_Comm comm_;
    std::unique_ptr<Device<Real>> device_;
    Balance in_rebuilds_{settings_.device_share}, in_others_{settings_.device_share};
    SharedTimes shared_;
    std::int64_t shared_blocks_ = 0, device_blocks_ = 0;
    Trial trial_{balances() && settings_.device_trials};
    double rebuild_seconds_ = 0.0;
    std::size_t old_own_reals_ = 0;
    AlignedVector<Real> old_f_, spare_f_;
    std::unique_ptr<Halo<Real>> old_halo_;  // that of before the rebuild
    std::vector<std::int32_t> old_plan_;
};

}  // namespace minimd
