// Forces of the embedded-atom method in a rebuild step, when a device computes what pairs yield and hosts
// move its ghosts (device.h).
//
// The device adds up densities of the old pairs while the host rebuilds. In the middle of that hosts bring
// the ghosts' densities home, embed the atoms and send the derivatives to ghosts; then the device computes
// the forces, and when hosts have rebuilt, they bring those on ghosts home. A host whose device is lost, at
// whatever point, computes what is missing; what ranks send each other does not tell.
#pragma once

#include <optional>
#include <vector>

#include "minimd/dynamics/eam_forces.h"
#include "minimd/offpath/device.h"

namespace minimd {

template <typename Real>
class EamRebuild {
  public:
    // `forces` outlive this.
    explicit EamRebuild(EamForces<Real>& forces) : forces_(forces) {}

    // What the forces are of: slots, lists and ghosts of before the rebuild.
    struct Old {
        const Real* x;  // of all slots
        Layout layout;
        std::int32_t local_slots, slots;
        const Neighborhood<Real>* neighborhood;
        const std::vector<PairLists>* lists;
        Halo<Real>* halo;
    };
    struct Result {
        EnergyVirial sum;
        std::optional<typename Device<Real>::Outcome> outcome;  // nothing where the host computed
    };

    // Both collective, one after the other. `old` stays until finish(), as does `device`, which has been
    // started on all pairs and has their ghosts; or is null.
    //
    // From densities to derivatives. Returns the seconds that it took when the densities were there.
    double exchange(const Old& old, Device<Real>* device, bool energy, Times& times);
    // Sets the forces on own slots to `f`, or to `f` and those of the outcome.
    Result finish(Device<Real>* device, AlignedVector<Real>& f, Times& times);

  private:
    // The pair energies.
    double host_densities();

    EamForces<Real>& forces_;
    Old old_{};
    bool energy_ = false, by_device_ = false;  // the densities are the device's
    EnergyVirial sum_;
    AlignedVector<Real> density_, derivative_;
};

}  // namespace minimd
