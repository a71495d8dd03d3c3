// A device that computes a part of the forces while the host does something else.
//
// One thread starts and finishes a step's share. There is one share at a time. Implementations: rank_device.h
// (the device is a rank of the job), kernel_device.h and eam_kernel_device.h (the device runs kernels).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "minimd/cells/particles.h"
#include "minimd/dynamics/neighborhood.h"
#include "minimd/kernels/kernels.h"

namespace minimd {

// The part of the pairs in the device's lists that it computes.
struct Share {
    std::vector<std::int32_t>
        first_rows;         // for each list, the first of its interior rows that the device computes
    bool boundary = false;  // with all rows that need ghosts
    bool energy = false;
};

// Who moves ghosts, and the forces on them, for a share with a boundary.
enum class GhostMover {
    devices,  // the devices, among themselves
    hosts     // the hosts, with take_ghosts() and ghost_forces(); in rebuild steps, when hosts communicate
              // anyway
};

template <typename Real>
class Device {
  public:
    virtual ~Device() = default;

    struct Outcome {
        EnergyVirial sum;
        double seconds = 0.0;  // in which the device computed
        double busy = 0.0;     // from start() until the device finished; >= seconds
        std::span<const Real>
            forces;             // on this rank's own slots, from `first` on; valid until the next start()
        std::size_t first = 0;  // index of a real; 0 for shares with a boundary
    };

    virtual GhostMover ghost_mover() const = 0;

    // Gives the device the lists and ghosts of the last rebuild, for all later shares. Between start() and
    // finish() this is allowed only if lists_ahead(), or after take_derivatives().
    virtual void set_lists(const Particles<Real>& particles, Neighborhood<Real>& neighborhood) = 0;

    // Starts on a share with the positions of `particles`. They are read until finish(): the array may be
    // swapped with another, but its contents must not change.
    virtual void start(const Particles<Real>& particles, const Share& share) = 0;

    // If hosts move ghosts: called once after each start() of a share with a boundary, when ghosts have
    // arrived. Apart from the ghosts, `particles` are those of start().
    virtual void take_ghosts(const Particles<Real>& particles) { (void)particles; }
    // Returns the forces on those ghosts, in their slots of an array of all slots. They are valid until the
    // next start(). Returns null if they are not complete yet or, with `wait`, if the device is lost.
    virtual const Real* ghost_forces(bool wait) {
        (void)wait;
        return nullptr;
    }

    // If hosts move ghosts, for forces of the embedded-atom method: waits for the densities that the share's
    // pairs yield, and returns them by slot. They are valid from first_slot() on. Where pairs are listed
    // once, the density of a ghost is its part of its atom's density. Called once, after take_ghosts(), or
    // after start() without a boundary. Returns null if the device is lost.
    virtual const Real* densities() { return nullptr; }
    // The first slot that the share of the last start() needs. 0 for a share with a boundary.
    virtual std::int32_t first_slot() const { return 0; }
    // Unless the device is lost, the host then gives it the derivatives of the embedding energies, by slot
    // and with those of ghosts.
    virtual void take_derivatives(std::span<const Real> derivatives) { (void)derivatives; }

    virtual bool lists_ahead() const { return false; }

    // Whether the device can compute forces that are not divisible (dynamics/forces.h). Its shares then
    // contain all pairs, unless takes_parts().
    virtual bool takes_undivided() const { return false; }
    virtual bool takes_parts() const { return false; }

    // Called after start() and a rebuild. The forces follow their atoms on the device, so that finish()
    // returns them for the new slots. Returns false if the device cannot do that, and finish() returns them
    // for the old slots.
    virtual bool follow(Migration<Real>& migration) {
        (void)migration;
        return false;
    }

    // Waits for the end of the share. Returns nothing if the device is lost. It must not be used again then.
    virtual std::optional<Outcome> finish() = 0;
};

}  // namespace minimd
