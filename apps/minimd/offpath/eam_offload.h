// Forces of the embedded-atom method in a step in which a device computes a part of what pairs yield, and
// hosts move its ghosts (device.h).
//
// Host and device add up densities of their pairs. Then hosts bring the ghosts' densities home, embed the
// atoms and send the derivatives to ghosts; then both compute the forces of their pairs, and hosts bring
// those on ghosts home. In a rebuild step the pairs are the old ones, and hosts rebuild meanwhile. A host
// whose device is lost, at whatever point, computes what is missing; what ranks send each other does not
// tell.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "minimd/dynamics/eam_forces.h"
#include "minimd/offpath/device.h"

namespace minimd {

template <typename Real>
class EamOffload {
  public:
    // `forces` outlive this.
    explicit EamOffload(EamForces<Real>& forces) : forces_(forces) {}

    // What the forces are of: slots, lists and ghosts.
    struct Input {
        const Real* x;  // of all slots
        Layout layout;
        std::int32_t local_slots, slots;
        const Neighborhood<Real>* neighborhood;
        const std::vector<PairLists>* lists;
        Halo<Real>* halo;
        // The device's share: interior rows by list, from these on. Pairs with ghosts are its own, too, or
        // else the host's.
        std::vector<std::int32_t> first_rows;
        bool device_boundary = true;
        Particles<Real>* stale = nullptr;  // whose ghosts have to be brought first
    };
    struct Result {
        EnergyVirial sum;
        std::optional<typename Device<Real>::Outcome> outcome;  // nothing where the host computed
    };
    // Seconds of the last step.
    struct Spent {
        double rows = 0.0;     // with the host's part of the interior pairs
        double waiting = 0.0;  // for the device
        double between = 0.0;  // from densities to derivatives
    };

    // Both collective, one after the other. `input` stays until finish(), as does `device`, which has been
    // started on its share and has their ghosts; or is null.
    //
    // From densities to derivatives.
    void exchange(const Input& input, Device<Real>* device, bool energy, Times& times);
    // Sets the forces on own slots to `f`, or to `f` and those of the outcome.
    Result finish(Device<Real>* device, AlignedVector<Real>& f, Times& times);

    const Spent& spent() const { return spent_; }

  private:
    bool home() const { return input_.neighborhood->shell() == Neighborhood<Real>::Shell::eighth; }
    // All by the host. The pair energies.
    double host_densities();
    // Of the host's own part. The pair energies, and the virial.
    double part_densities(Times& times);
    double part_forces(Real* f);

    EamForces<Real>& forces_;
    Input input_{};
    bool energy_ = false, shared_ = false;  // the device has added to the densities
    EnergyVirial sum_, part_;               // of all that is done; of the host's part of what is shared
    Spent spent_;
    AlignedVector<Real> density_, derivative_;
};

}  // namespace minimd
