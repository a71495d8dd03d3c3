// Atoms to the ranks that shall have them: by place, or by id. All calls are collective.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "minimd/base/atoms.h"
#include "minimd/domain/decomposition.h"
#include "minimd/files/atom_record.h"

namespace minimd {

// Whose subdomain a position in the box lies in. Every position has exactly one owner.
class Owners {
  public:
    // Collective.
    explicit Owners(const Decomposition& decomposition);
    int of(const Vec3& x) const;

  private:
    const Decomposition& decomposition_;
    std::vector<int> rank_at_;  // by place
};

// Sends record i to rank destinations[i]. What arrives is ordered by sender, then as it was sent.
std::vector<AtomRecord> exchanged(const std::vector<AtomRecord>& records,
                                  const std::vector<int>& destinations, MPI_Comm comm);

// Ids from first to before last.
struct IdRange {
    std::int64_t first, last;
};
// The part of the ids 1 to `atoms` that is a rank's when all are dealt evenly in order.
IdRange ids_of(int rank, int ranks, std::int64_t atoms);

// This rank's part of all atoms in the order of their ids, wrapped into the box. Throws std::runtime_error on
// every rank when an id is missing, there twice, or none of 1 to `atoms`.
std::vector<AtomRecord> in_id_order(const AtomList& atoms, std::int64_t all_atoms, const Vec3& box,
                                    MPI_Comm comm);

}  // namespace minimd
