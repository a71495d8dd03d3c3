// The steps of a run in which a device takes part.
//
// `paper`: while the host re-neighbours, the device computes all forces on the lists of before (section IV of
// "Smarter NICs for faster molecular dynamics", IPDPS 2022); in other steps it idles. `balanced`: in every
// step it takes as much as makes both finish together, with the ghosts. `split`: it computes the pairs that
// need ghosts, in every step. A device that is lost leaves its share to the host, and the run goes on without
// it.
#pragma once

#include <cstdint>
#include <memory>

#include "minimd/dynamics/forces.h"
#include "minimd/dynamics/neighborhood.h"
#include "minimd/offpath/balance.h"
#include "minimd/offpath/device.h"
#include "minimd/report/results.h"
#include "minimd/setup/settings.h"

namespace minimd {

template <typename Real>
class Offload {
  public:
    Offload(const Settings& settings, LennardJonesForces<Real>& forces, std::unique_ptr<Device<Real>> device)
        : settings_(settings), forces_(forces), device_(std::move(device)) {}

    // Tries both sides out on the lists that the device was given, for the first shares; `rebuild_seconds` is
    // what a rebuild took. Collective.
    void calibrate(const Particles<Real>& particles, Neighborhood<Real>& neighborhood,
                   double rebuild_seconds);

    // After a rebuild that was not one of rebuild()'s.
    void lists_changed(const Particles<Real>& particles, Neighborhood<Real>& neighborhood) {
        if (device_) device_->set_lists(particles, neighborhood);
    }

    // Do rebuild steps go off the path?
    bool rebuilds() const { return device_ != nullptr && settings_.offpath != OffPath::none; }

    // Rebuilds, and sets the forces from the lists before that. Collective.
    EnergyVirial rebuild(Particles<Real>& particles, Neighborhood<Real>& neighborhood, std::int64_t step,
                         bool energy, Times& times);

    // The forces of a step without a rebuild, or with one that was done. Collective.
    EnergyVirial ordinary(Particles<Real>& particles, Neighborhood<Real>& neighborhood, bool fresh,
                          bool energy, Times& times);

    // Blocks of pairs over all steps in which the device took part, and those that it computed.
    std::int64_t shared_blocks() const { return shared_blocks_; }
    std::int64_t device_blocks() const { return device_blocks_; }

  private:
    std::vector<std::int32_t> first_rows(const std::vector<PairLists>& lists, double share) const;
    // The host's rows before first[t], or from them on.
    EnergyVirial host_rows(const Real* x, const std::vector<PairLists>& lists,
                           const std::vector<std::int32_t>& first, bool before, bool energy,
                           AlignedVector<Real>& f);
    EnergyVirial boundary_rows(const Real* x, const std::vector<PairLists>& lists, bool energy,
                               AlignedVector<Real>& f);
    // Blocks of pairs of the step, and those that the device computed.
    void account(Balance& balance, std::size_t all, std::size_t devices,
                 const typename Device<Real>::Outcome& outcome);
    bool balances() const { return settings_.offpath == OffPath::balanced && settings_.device_share < 0.0; }
    void lose_device();

    const Settings& settings_;
    LennardJonesForces<Real>& forces_;
    std::unique_ptr<Device<Real>> device_;
    Balance in_rebuilds_{settings_.device_share}, in_others_{settings_.device_share};
    std::int64_t shared_blocks_ = 0, device_blocks_ = 0;
    double rebuild_seconds_ = 0.0;
    AlignedVector<Real> old_f_;
};

}  // namespace minimd
