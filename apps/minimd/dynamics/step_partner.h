// A participant in the steps of a simulation. It computes their forces, alone or together with the host.
//
// A simulation without a partner rebuilds and computes on its own (simulation.h). All calls are collective
// unless stated otherwise, and one thread makes them. The implementation is offpath/offload.h.
#pragma once

#include <cstdint>

#include "minimd/base/results.h"
#include "minimd/cells/particles.h"
#include "minimd/dynamics/neighborhood.h"
#include "minimd/kernels/kernels.h"

namespace minimd {

template <typename Real>
class StepPartner {
  public:
    virtual ~StepPartner() = default;

    // Called before the first step, with the lists of the first lists_changed(). `rebuild_seconds` is the
    // time that a rebuild took.
    virtual void calibrate(Particles<Real>& particles, Neighborhood<Real>& neighborhood,
                           double rebuild_seconds) = 0;

    // Called after a rebuild that rebuild() did not do. Local.
    virtual void lists_changed(const Particles<Real>& particles, Neighborhood<Real>& neighborhood) = 0;

    // Whether rebuild() does the next step with a rebuild. The answer is the same on all ranks. Local.
    virtual bool rebuilds() const = 0;

    // Rebuilds, and sets the forces of the pairs in the lists before the rebuild.
    virtual EnergyVirial rebuild(Particles<Real>& particles, Neighborhood<Real>& neighborhood,
                                 std::int64_t step, bool energy, Times& times) = 0;

    // Called after each step with a rebuild. `seconds` is the time since the first step began.
    virtual void rebuilt(double seconds, Neighborhood<Real>& neighborhood) = 0;

    // Sets the forces of a step without a rebuild, or, if `fresh`, of a step whose rebuild is done and has
    // brought the ghosts.
    virtual EnergyVirial ordinary(Particles<Real>& particles, Neighborhood<Real>& neighborhood, bool fresh,
                                  bool energy, Times& times) = 0;

    // Seconds on a core in calls of MPI, without those of the neighbourhood's halo. Local.
    virtual double calls() const = 0;

    // Times and blocks of pairs over all steps in which the partner took part. device_blocks() are those that
    // the host did not compute. Local.
    virtual SharedTimes shared_times() const = 0;
    virtual std::int64_t shared_blocks() const = 0;
    virtual std::int64_t device_blocks() const = 0;
};

}  // namespace minimd
