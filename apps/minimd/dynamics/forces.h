// The forces of a step. Some pairs that need no ghosts are computed while ghosts travel. The pairs that need
// ghosts follow. The rest is computed while forces on ghosts travel home.
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

    // Whether rows() can compute the forces of a part of the pairs.
    virtual bool divisible() const { return false; }

    // Sets the forces on this rank's atoms. If `fresh`, ghosts are up to date. Otherwise this function starts
    // and finishes their update. The energy is meaningful only if `energy`. Collective.
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

    // Adds the forces of `parts` to `f`, each part on a thread of its own. The size of `f` is a multiple of a
    // block.
    EnergyVirial rows(const Real* x, std::span<const PairRows> parts, bool both_sides, bool energy,
                      AlignedVector<Real>& f);

  private:
    EnergyVirial run(Particles<Real>& particles, Neighborhood<Real>& neighborhood, PairPart part,
                     bool energy);
    EnergyVirial run_rows(Particles<Real>& particles, std::span<const PairRows> parts, bool both_sides,
                          bool energy);

    const Kernels<Real>& kernels_;
    LjParameters parameters_;
    int pieces_;    // pieces of a part, between which MPI is polled
    int slowness_;  // for a device that simulates on its own: how many times compute() repeats its work
    std::vector<AlignedVector<Real>> thread_f_;  // of all threads but the first
    AlignedVector<Real> spare_f_;
};

}  // namespace minimd
