// What takes part in the steps of a simulation: it computes their forces, alone or together with the host.
//
// A simulation without a partner rebuilds and computes on its own (simulation.h). All calls are collective
// unless stated otherwise, and made by one thread. Implementation: offpath/offload.h.
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

    // Before the first step, on the lists of the first lists_changed(). `rebuild_seconds` is what a rebuild
    // took.
    virtual void calibrate(Particles<Real>& particles, Neighborhood<Real>& neighborhood,
                           double rebuild_seconds) = 0;

    // After a rebuild that was not one of rebuild()'s. Local.
    virtual void lists_changed(const Particles<Real>& particles, Neighborhood<Real>& neighborhood) = 0;

    // Does the next rebuild step go to rebuild()? The answer is the same on all ranks. Local.
    virtual bool rebuilds() const = 0;

    // Rebuilds, and sets the forces from the lists before that.
    virtual EnergyVirial rebuild(Particles<Real>& particles, Neighborhood<Real>& neighborhood,
                                 std::int64_t step, bool energy, Times& times) = 0;

    // After each step with a rebuild, `seconds` after the first step began.
    virtual void rebuilt(double seconds, Neighborhood<Real>& neighborhood) = 0;

    // The forces of a step without a rebuild, or with one that was done.
    virtual EnergyVirial ordinary(Particles<Real>& particles, Neighborhood<Real>& neighborhood, bool fresh,
                                  bool energy, Times& times) = 0;

    // Seconds in calls of MPI, without those of the neighbourhood's halo. Local.
    virtual double calls() const = 0;

    // Blocks of pairs over all steps in which the partner took part, and those that the host did not
    // compute. Local.
    virtual SharedTimes shared_times() const = 0;  // of those steps
    virtual std::int64_t shared_blocks() const = 0;
    virtual std::int64_t device_blocks() const = 0;
};

}  // namespace minimd
