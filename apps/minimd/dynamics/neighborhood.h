// Everything that a re-neighbouring makes anew: the owner of each atom, its slot, the ghosts and the pairs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "minimd/base/results.h"
#include "minimd/base/settings.h"
#include "minimd/cells/pair_list.h"
#include "minimd/cells/particles.h"
#include "minimd/domain/decomposition.h"
#include "minimd/domain/halo.h"
#include "minimd/domain/migration.h"

namespace minimd {

template <typename Real>
class Neighborhood {
  public:
    using Shell = typename PairSearch<Real>::Shell;

    Neighborhood(const Settings& settings, const Decomposition& decomposition, const Kernels<Real>& kernels,
                 double density);

    // Functions that rebuild() calls on its way, unless they are empty.
    struct Stages {
        std::function<void()>
            exchanged;  // atoms have their new ranks; particles and ghosts are still the old ones
        std::function<void()> settled;  // atoms have their new slots
        // The pairs without ghosts have been found, and the new ghosts are travelling. The time that this
        // call takes is not added to the times.
        std::function<void()> searched;
    };
    // Rebuilds everything, and adds the time it takes to `times`. Collective. Throws SimulationError.
    void rebuild(Particles<Real>& particles, std::int64_t step, Times& times, const Stages& stages = {});

    Shell shell() const { return shell_; }
    // Whether each interior pair (or each pair with a ghost, if `boundary`) is listed only once, so that both
    // of its atoms get the force.
    bool both_sides(bool boundary) const {
        return shell_ == Shell::eighth || (shell_ == Shell::one_sided && !boundary);
    }
    Halo<Real>& halo() { return halo_; }
    // Returns another halo of the same kind, without ghosts.
    std::unique_ptr<Halo<Real>> new_halo() const;
    Migration<Real>& migration() { return migration_; }
    std::vector<PairLists>& lists() { return lists_; }  // one for each thread
    // The lists before the last rebuild.
    std::vector<PairLists>& old_lists() { return old_lists_; }
    const std::vector<Zone<Real>>& zones() const { return zones_; }

    // The furthest that an atom of this rank moved, and its id. It is measured between the last two rebuilds,
    // or, after measure_excursion(), from the last rebuild until that call.
    struct Excursion {
        double distance = 0.0;
        std::int64_t id = 0;
    };
    Excursion excursion() const { return excursion_; }
    void measure_excursion(const Particles<Real>& particles);

  private:
    // Calls find(task, lists) on every thread.
    template <typename Find>
    void search(const Find& find);

    const Settings& settings_;
    const Decomposition& decomposition_;
    Shell shell_;
    double column_side_;
    Migration<Real> migration_;
    Halo<Real> halo_;
    PairSearch<Real> search_;
    std::vector<Zone<Real>> zones_;
    std::vector<PairLists> lists_, old_lists_;
    std::vector<std::int32_t> order_;
    AlignedVector<Real> built_x_;
    Excursion excursion_;
};

}  // namespace minimd
