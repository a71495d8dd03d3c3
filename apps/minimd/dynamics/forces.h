// The forces of a step: some pairs that need no ghosts while those travel, then those that do, then, while
// forces on ghosts travel home, the rest.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "minimd/base/results.h"
#include "minimd/base/settings.h"
#include "minimd/cells/particles.h"
#include "minimd/dynamics/neighborhood.h"
#include "minimd/kernels/kernels.h"

namespace minimd {

template <typename Real>
class Forces {
  public:
    virtual ~Forces() = default;

    // Can parts of the pairs be computed apart (rows())?
    virtual bool divisible() const { return false; }

    // Sets the forces on this rank's atoms. `fresh`: ghosts are where they should be; else their update is
    // started and finished here. Collective. The energy is meaningful if it was asked for.
    virtual EnergyVirial compute(Particles<Real>& particles, Neighborhood<Real>& neighborhood, bool fresh,
                                 bool energy, Times& times) = 0;
};

template <typename Real>
class LennardJonesForces final : public Forces<Real> {
  public:
    LennardJonesForces(const Settings& settings, const Kernels<Real>& kernels);

    EnergyVirial compute(Particles<Real>& particles, Neighborhood<Real>& neighborhood, bool fresh,
                         bool energy, Times& times) override;

    bool divisible() const override { return true; }

    // Adds to `f`, whose size is a multiple of a block, the forces of `parts`, each by a thread of its own.
    EnergyVirial rows(const Real* x, std::span<const PairRows> parts, bool both_sides, bool energy,
                      AlignedVector<Real>& f);

  private:
    EnergyVirial run(Particles<Real>& particles, Neighborhood<Real>& neighborhood, PairPart part,
                     bool energy);
    EnergyVirial run_rows(Particles<Real>& particles, std::span<const PairRows> parts, bool both_sides,
                          bool energy);

    const Kernels<Real>& kernels_;
    LjParameters parameters_;
    int pieces_;    // of a part, between which MPI is called
    int slowness_;  // of a device that simulates on its own: compute() computes so many times
    std::vector<AlignedVector<Real>> thread_f_;  // of all threads but the first
    AlignedVector<Real> spare_f_;
};

}  // namespace minimd
