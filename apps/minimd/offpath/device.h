// A device that computes a part of the forces while the host does something else.
//
// A step's share is started and finished by the same thread, one at a time. Implementations: rank_device.h
// (the device is a rank of the job), kernel_device.h and eam_kernel_device.h (a device that runs kernels).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "minimd/cells/particles.h"
#include "minimd/dynamics/neighborhood.h"
#include "minimd/kernels/kernels.h"

namespace minimd {

// Of the pairs in the lists that the device has.
struct Share {
    std::vector<std::int32_t> first_rows;  // by list: its interior rows from here on
    bool boundary = false;                 // all rows that need ghosts too
    bool energy = false;
};

// Who moves ghosts, and the forces on them, for a share with a boundary.
enum class GhostMover {
    devices,  // among themselves
    hosts     // take_ghosts() and ghost_forces(); in rebuild steps, where hosts communicate anyway
};

template <typename Real>
class Device {
  public:
    virtual ~Device() = default;

    struct Outcome {
        EnergyVirial sum;
        double seconds = 0.0;          // that the device computed
        double busy = 0.0;             // from start() until it was done; >= seconds
        std::span<const Real> forces;  // on this rank's own slots, from `first` on; until the next start()
        std::size_t first = 0;         // of the reals; 0 for shares with a boundary
    };

    virtual GhostMover ghost_mover() const = 0;

    // The lists and ghosts of the last rebuild, for the shares from now on. Between start() and finish() only
    // if lists_ahead(), or when take_derivatives() has been called.
    virtual void set_lists(const Particles<Real>& particles, Neighborhood<Real>& neighborhood) = 0;

    // Starts on a share with the positions of `particles`, which are then read until finish(): the array may
    // be swapped, but not changed.
    virtual void start(const Particles<Real>& particles, const Share& share) = 0;

    // Where hosts move ghosts, once after each start() of a share with a boundary, from when ghosts are in
    // `particles`, which otherwise are those of start().
    virtual void take_ghosts(const Particles<Real>& particles) { (void)particles; }
    // The forces on those ghosts, in their slots of an array of all, until the next start(). Null: not yet,
    // or, with `wait`, the device is lost.
    virtual const Real* ghost_forces(bool wait) {
        (void)wait;
        return nullptr;
    }

    // Where hosts move ghosts for forces of the embedded-atom method: the densities that the share's pairs
    // yield, by slot from first_slot() on, ghosts' shares of their atoms' among them where pairs are listed
    // once. Waits for them, once after take_ghosts(), or start() without a boundary. Null: the device is
    // lost.
    virtual const Real* densities() { return nullptr; }
    // Of the last start(): the first that its share needs; 0 with a boundary.
    virtual std::int32_t first_slot() const { return 0; }
    // Then, unless it is lost, the derivatives of the embedding energies, by slot, those of ghosts included.
    virtual void take_derivatives(std::span<const Real> derivatives) { (void)derivatives; }

    virtual bool lists_ahead() const { return false; }

    // Can it compute forces that are not divisible (dynamics/forces.h)?  Shares are then of all pairs, unless
    // takes_parts().
    virtual bool takes_undivided() const { return false; }
    virtual bool takes_parts() const { return false; }

    // After start() and a rebuild: has the forces follow their atoms on the device, so that finish() delivers
    // them for the new slots. Returns false where it cannot; finish() then delivers them for the old ones.
    virtual bool follow(Migration<Real>& migration) {
        (void)migration;
        return false;
    }

    // Nothing when the device is lost, which must not be used again.
    virtual std::optional<Outcome> finish() = 0;
};

}  // namespace minimd
