// Collects all ranks' atoms.
#pragma once

#include <mpi.h>

#include <cstring>
#include <map>
#include <vector>

#include "minimd/base/atoms.h"

namespace minimd {

struct Atom {
    std::int64_t id;
    std::int32_t type;
    Vec3 x, v;
    bool operator==(const Atom&) const = default;
};

// Returns all atoms by id, on every rank. Collective. An id that two ranks have appears once, so callers
// should also compare the number of atoms.
inline std::map<std::int64_t, Atom> gathered(const AtomList& atoms, MPI_Comm comm) {
    std::vector<Atom> mine;
    for (std::size_t i = 0; i < atoms.size(); ++i)
        mine.push_back({atoms.id[i], atoms.type[i], atoms.x[i], atoms.v[i]});
    int ranks = 1;
    MPI_Comm_size(comm, &ranks);
    const auto count = static_cast<std::size_t>(ranks);
    const int bytes = static_cast<int>(mine.size() * sizeof(Atom));
    std::vector<int> sizes(count), places(count);
    MPI_Allgather(&bytes, 1, MPI_INT, sizes.data(), 1, MPI_INT, comm);
    int all = 0;
    for (std::size_t r = 0; r < count; ++r) {
        places[r] = all;
        all += sizes[r];
    }
    std::vector<Atom> everything(static_cast<std::size_t>(all) / sizeof(Atom));
    MPI_Allgatherv(mine.data(), bytes, MPI_BYTE, everything.data(), sizes.data(), places.data(), MPI_BYTE,
                   comm);
    std::map<std::int64_t, Atom> by_id;
    for (const Atom& atom : everything)
        by_id.emplace(atom.id, atom);
    return by_id;
}

}  // namespace minimd
