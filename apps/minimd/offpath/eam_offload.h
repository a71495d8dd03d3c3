// Forces of the embedded-atom method in a step in which a device computes a part of the pairs, and hosts move
// its ghosts (device.h).
//
// Host and device add up the densities of their pairs. Then the hosts send the ghosts' densities home, embed
// the atoms and send the derivatives to the ghosts. Then host and device compute the forces of their pairs,
// and the hosts send the forces on ghosts home. In a rebuild step the pairs are the old ones, and the hosts
// rebuild meanwhile. A host whose device is lost, at whatever point, computes what is missing. The messages
// between ranks stay the same.
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
    // `forces` must outlive this object.
    explicit EamOffload(EamForces<Real>& forces) : forces_(forces) {}

    // What the forces are computed from: slots, lists and ghosts.
    struct Input {
        const Real* x;  // of all slots
        Layout layout;
        std::int32_t local_slots, slots;
        const Neighborhood<Real>* neighborhood;
        const std::vector<PairLists>* lists;
        Halo<Real>* halo;
        // The device's share: for each list, its interior rows from this one on. The pairs with ghosts are
        // the device's if device_boundary, else the host's.
        std::vector<std::int32_t> first_rows;
        bool device_boundary = true;
        Particles<Real>* stale = nullptr;  // particles whose ghosts must be updated first, or null
    };
    struct Result {
        EnergyVirial sum;
        std::optional<typename Device<Real>::Outcome> outcome;  // empty if the host computed everything
    };
    // Seconds of the last step.
    struct Spent {
        double rows = 0.0;     // on the host's part of the interior pairs
        double waiting = 0.0;  // for the device
        double between = 0.0;  // from densities to derivatives
    };

    // Both functions are collective and are called one after the other. `device` has been started on its
    // share and, if that has a boundary, has its ghosts. It may be null. `device` and what `input` points to
    // must stay valid until finish().
    //
    // Computes densities and derivatives.
    void exchange(const Input& input, Device<Real>* device, bool energy, Times& times);
    // Sets `f` so that the forces on own slots are `f`, plus the forces of the outcome if there is one.
    Result finish(Device<Real>* device, AlignedVector<Real>& f, Times& times);

    const Spent& spent() const { return spent_; }

  private:
    bool home() const { return input_.neighborhood->shell() == Neighborhood<Real>::Shell::eighth; }
    // Computes the densities of all pairs on the host. Returns the pair energies.
    double host_densities();
    // Compute densities and forces of the host's own part. Return its pair energies and its virial.
    double part_densities(Times& times);
    double part_forces(Real* f);

    EamForces<Real>& forces_;
    Input input_{};
    bool energy_ = false, shared_ = false;  // whether the device has added to the densities
    EnergyVirial sum_, part_;  // of everything that is complete; of the host's part of a shared computation
    Spent spent_;
    AlignedVector<Real> density_, derivative_;
};

}  // namespace minimd
