// Who has ghosts of whose atoms, and in which slots: all that a halo needs to know to move numbers.
//
// The images are fixed by the grid; which atoms they have, and where ghosts lie, is found out anew at each
// re-neighbouring: select(), start_counts() and take_counts(), and place_ghosts() when their positions are
// here.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "minimd/cells/pair_list.h"
#include "minimd/cells/particles.h"
#include "minimd/domain/decomposition.h"

namespace minimd {

// Images of this rank's atoms: the receiver is `offset` places below (in the grid) of the owner.
template <typename Real>
struct GhostImage {
    std::array<int, 3> offset{};
    std::array<Real, 3> shift{};   // what an atom's position gets on its way
    std::array<double, 3> edge{};  // the receiver's, in this rank's coordinates
    std::size_t zone = 0;
    std::vector<std::int32_t> slots;  // of the atoms sent
};

struct GhostPeer {
    int rank = 0;
    std::vector<std::size_t> images_out, images_in;
    std::vector<int> counts_out, counts_in;  // by image
    std::vector<std::int32_t> slots_in;      // where ghosts from here are, in the order of arrival
};

// Of an atom to its ghost on the same rank.
struct GhostCopy {
    std::int32_t from, to;  // slots
};

template <typename Real>
struct HaloPlan {
    using Shell = typename PairSearch<Real>::Shell;

    // Images within `range` of the subdomain: in the upward directions only for Shell::eighth.
    HaloPlan(const Decomposition& decomposition, double range, Shell shell);

    // Which atoms every image has.
    void select(const Particles<Real>& particles);
    // Tells every peer how many come, and asks how many do. When `requests` are done a peer's slots_in gets
    // as many places.
    void start_counts(std::vector<MPI_Request>& requests);
    void take_counts();

    std::size_t atoms_out(const GhostPeer& peer) const;

    // The plan as numbers appended to `numbers`, and one of the same grid that takes it over.
    void describe(std::vector<std::int32_t>& numbers) const;
    void adopt(std::span<const std::int32_t> numbers);

    const Decomposition& decomposition;
    double range;
    Shell shell;
    std::vector<GhostImage<Real>> images;
    std::vector<GhostPeer> peers;
    std::vector<std::size_t> own_images;         // that this rank sends itself
    std::vector<std::vector<GhostCopy>> copies;  // by own image
};

// Gives every ghost a slot behind the rank's own atoms, zone by zone; zones[0] is not touched. `in`: the
// positions from each peer, in the order of its images. Those of own images are taken from `particles`.
// `column_side` as in Columns. Returns the number of ghosts.
template <typename Real>
std::size_t place_ghosts(HaloPlan<Real>& plan, const std::vector<std::vector<Real>>& in, double column_side,
                         Particles<Real>& particles, std::vector<Zone<Real>>& zones);

}  // namespace minimd
