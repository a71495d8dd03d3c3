// The engine without its loop of steps: atoms on all ranks, with lists and forces on demand.
#pragma once

#include <mpi.h>

#include <memory>
#include <stdexcept>
#include <vector>

#include "gathered.h"
#include "minimd/base/settings.h"
#include "minimd/domain/decomposition.h"
#include "minimd/dynamics/forces.h"
#include "minimd/dynamics/neighborhood.h"
#include "slots.h"

namespace minimd {

template <typename Real>
class Engine {
  public:
    using Shell = typename PairSearch<Real>::Shell;

    // Every rank passes all atoms and keeps its own. Collective.
    Engine(const Settings& asked, const Vec3& box, const AtomList& all, MPI_Comm comm = MPI_COMM_WORLD)
        : settings(asked),
          decomposition(comm, box),
          kernel(kernels<Real>(asked.lanes)),
          neighborhood(settings, decomposition, kernel,
                       static_cast<double>(all.size()) / (box[0] * box[1] * box[2])) {
        AtomList own;
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (!decomposition.contains(all.x[i])) continue;
            own.id.push_back(all.id[i]);
            own.type.push_back(all.type[i]);
            own.x.push_back(all.x[i]);
            own.v.push_back(all.v[i]);
        }
        particles = in_slots<Real>({kernel.lanes}, own);
    }

    void rebuild(std::int64_t step = 0) { neighborhood.rebuild(particles, step, times); }

    Vec3 get(const AlignedVector<Real>& blocks, std::int32_t slot) const {
        Vec3 value;
        for (std::size_t d = 0; d < 3; ++d)
            value[d] = static_cast<double>(blocks[at(slot, d)]);
        return value;
    }
    void set(AlignedVector<Real>& blocks, std::int32_t slot, const Vec3& value) const {
        for (std::size_t d = 0; d < 3; ++d)
            blocks[at(slot, d)] = static_cast<Real>(value[d]);
    }

    // Calls call(slot, id) for each of this rank's atoms.
    template <typename Call>
    void for_each_atom(Call&& call) const {
        for (std::int32_t slot = 0; slot < particles.local_slots; ++slot)
            if (particles.id[static_cast<std::size_t>(slot)] != 0)
                call(slot, particles.id[static_cast<std::size_t>(slot)]);
    }

    // Returns all ranks' atoms by id, with `v` from `blocks`. Collective.
    std::map<std::int64_t, Atom> everywhere(const AlignedVector<Real>& blocks) const {
        AtomList mine;
        for_each_atom([&](std::int32_t slot, std::int64_t id) {
            mine.id.push_back(id);
            mine.type.push_back(particles.type[static_cast<std::size_t>(slot)]);
            mine.x.push_back(get(particles.x, slot));
            mine.v.push_back(get(blocks, slot));
        });
        return gathered(mine, decomposition.comm());
    }

    EnergyVirial over_ranks(EnergyVirial sum) const {
        double values[2] = {sum.energy, sum.virial};
        MPI_Allreduce(MPI_IN_PLACE, values, 2, MPI_DOUBLE, MPI_SUM, decomposition.comm());
        return {values[0], values[1]};
    }

    const Settings settings;
    const Decomposition decomposition;
    const Kernels<Real>& kernel;
    Neighborhood<Real> neighborhood;
    Particles<Real> particles;
    Times times;

  private:
    std::size_t at(std::int32_t slot, std::size_t dim) const {
        return particles.layout.address(slot) + dim * static_cast<std::size_t>(particles.layout.lanes);
    }
};

}  // namespace minimd
