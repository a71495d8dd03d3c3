// Everything that is made anew at a re-neighbouring: who owns which atom, in which slot, with which ghosts
// and pairs.
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

    // Called during a rebuild, each if it is there.
    struct Stages {
        std::function<void()> exchanged;  // atoms have their new ranks, but particles and ghosts are the old
        std::function<void()> settled;    // atoms have their new slots
        // The pairs without ghosts are there, while the new ghosts travel. What this takes is not added to
        // times.
        std::function<void()> searched;
    };
    // Collective. Adds to `times` what it took. Throws SimulationError.
    void rebuild(Particles<Real>& particles, std::int64_t step, Times& times, const Stages& stages = {});

    Shell shell() const { return shell_; }
    // Do the interior pairs, or those with ghosts, stand in one list only, so that both atoms get the force?
    bool both_sides(bool boundary) const {
        return shell_ == Shell::eighth || (shell_ == Shell::one_sided && !boundary);
    }
    Halo<Real>& halo() { return halo_; }
    // Another one of the same kind, without ghosts.
    std::unique_ptr<Halo<Real>> new_halo() const;
    Migration<Real>& migration() { return migration_; }
    std::vector<PairLists>& lists() { return lists_; }  // one for each thread
    // Those before the last rebuild.
    std::vector<PairLists>& old_lists() { return old_lists_; }
    const std::vector<Zone<Real>>& zones() const { return zones_; }

    // The furthest that an atom of this rank went between the last two rebuilds, or from the last one until
    // measure_excursion() was called behind it; and its id.
    struct Excursion {
        double distance = 0.0;
        std::int64_t id = 0;
    };
    Excursion excursion() const { return excursion_; }
    void measure_excursion(const Particles<Real>& particles);

  private:
    // find(task, lists) by every thread.
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
