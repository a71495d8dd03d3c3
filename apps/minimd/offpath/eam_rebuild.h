// Forces of the embedded-atom method in a rebuild step, when a device computes what pairs yield and hosts
// move its ghosts (device.h).
//
// The device has been adding up densities of the old pairs while the host rebuilt. Then hosts bring the
// ghosts' densities home, embed the atoms and send the derivatives to ghosts; the device computes the forces,
// and hosts bring those on ghosts home. A host whose device is lost, at whatever point, computes what is
// missing; what ranks send each other does not tell.
#pragma once

#include <functional>
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
        const std::vector<PairLists>& lists;
        Halo<Real>& halo;
    };
    struct Result {
        EnergyVirial sum;
        std::optional<typename Device<Real>::Outcome> outcome;  // nothing where the host computed
        double seconds = 0.0;                                   // from when densities were there
    };

    // `device`: with a share of all pairs that has its ghosts, or null. `computing` is called when it has all
    // that it needs for this step. Sets the forces on own slots to `f`, or to `f` and those of the outcome.
    // Collective.
    Result finish(const Old& old, const Neighborhood<Real>& neighborhood, Device<Real>* device, bool energy,
                  const std::function<void()>& computing, AlignedVector<Real>& f, Times& times);

  private:
    EamForces<Real>& forces_;
    AlignedVector<Real> density_, derivative_;
};

}  // namespace minimd
