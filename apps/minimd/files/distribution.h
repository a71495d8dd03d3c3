// Sends atoms to the ranks that shall have them, by place or by id. All calls are collective unless stated
// otherwise.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "minimd/base/atoms.h"
#include "minimd/domain/decomposition.h"
#include "minimd/files/atom_record.h"

namespace minimd {

// The rank whose subdomain holds a position in the box. Every position has exactly one owner.
class Owners {
  public:
    // Collective. of() is local.
    explicit Owners(const Decomposition& decomposition);
    int of(const Vec3& x) const;

  private:
    const Decomposition& decomposition_;
    std::vector<int> rank_at_;  // by place in the grid
};

// Sends record i to rank destinations[i]. Returns the records that arrive, ordered by sender, then as they
// were sent.
std::vector<AtomRecord> exchanged(const std::vector<AtomRecord>& records,
                                  const std::vector<int>& destinations, MPI_Comm comm);

// The ids from `first` up to, but not including, `last`.
struct IdRange {
    std::int64_t first, last;
};
// Returns the ids of `rank` when the ids 1 to `atoms` are distributed evenly, in order. Local.
IdRange ids_of(int rank, int ranks, std::int64_t atoms);

// Returns this rank's part of all atoms, in the order of their ids and wrapped into the box. Throws
// std::runtime_error on every rank if an id is missing, occurs twice, or is not in 1 to `atoms`.
std::vector<AtomRecord> in_id_order(const AtomList& atoms, std::int64_t all_atoms, const Vec3& box,
                                    MPI_Comm comm);

}  // namespace minimd
