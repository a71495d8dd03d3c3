// Which ranks have ghosts of which atoms, and in which slots: all that a halo needs to move numbers.
//
// The grid determines the images. The atoms that they contain, and the slots of the ghosts, are determined at
// each re-neighbouring: by select(), start_counts() and take_counts(), and by place_ghosts() when the ghosts'
// positions have arrived.
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

// Images of this rank's atoms for one receiver, which is `offset` places below the owner in the grid.
template <typename Real>
struct GhostImage {
    std::array<int, 3> offset{};
    std::array<Real, 3> shift{};   // added to the position of each atom that is sent
    std::array<double, 3> edge{};  // the receiver's side that faces this rank, in this rank's coordinates
    std::size_t zone = 0;
    std::vector<std::int32_t> slots;  // of the atoms that are sent
};

struct GhostPeer {
    int rank = 0;
    std::vector<std::size_t> images_out, images_in;
    std::vector<int> counts_out, counts_in;  // by image
    std::vector<std::int32_t> slots_in;      // the ghosts from this peer, in the order of arrival
};

// An atom and its ghost on the same rank.
struct GhostCopy {
    std::int32_t from, to;  // slots
};

template <typename Real>
struct HaloPlan {
    using Shell = typename PairSearch<Real>::Shell;

    // Has the images within `range` of the subdomain, only in the upward directions for Shell::eighth.
    HaloPlan(const Decomposition& decomposition, double range, Shell shell);

    // Chooses the atoms of every image.
    void select(const Particles<Real>& particles);
    // start_counts() tells every peer how many atoms this rank will send, and asks how many it will receive.
    // When `requests` are done, take_counts() gives each peer's slots_in that many places.
    void start_counts(std::vector<MPI_Request>& requests);
    void take_counts();

    std::size_t atoms_out(const GhostPeer& peer) const;

    // describe() appends the plan to `numbers`. adopt() takes over the plan of another process with the same
    // grid.
    void describe(std::vector<std::int32_t>& numbers) const;
    void adopt(std::span<const std::int32_t> numbers);

    const Decomposition& decomposition;
    double range;
    Shell shell;
    std::vector<GhostImage<Real>> images;
    std::vector<GhostPeer> peers;
    std::vector<std::size_t> own_images;         // images that this rank sends to itself
    std::vector<std::vector<GhostCopy>> copies;  // by own image
};

// Gives every ghost a slot behind the rank's own atoms, zone by zone. zones[0] is not changed. `in` has the
// positions from each peer, in the order of its images. Those of own images are copied from `particles`.
// `column_side` is that of Columns. Returns the number of ghosts.
template <typename Real>
std::size_t place_ghosts(HaloPlan<Real>& plan, const std::vector<std::vector<Real>>& in, double column_side,
                         Particles<Real>& particles, std::vector<Zone<Real>>& zones);

}  // namespace minimd
