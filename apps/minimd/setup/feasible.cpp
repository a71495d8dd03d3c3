#include "minimd/setup/feasible.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "minimd/base/layout.h"
#include "support/mpi_program.h"

namespace minimd {

namespace {

// Slots are counted in 32 bits, and not all blocks are full.
constexpr double most_atoms_of_rank = 1e9;
// The most images of a rank's subdomain, in all directions. Each is checked for every atom near an edge.
constexpr double most_images = 100000;

}  // namespace

void check_feasible(const Settings& settings, const Decomposition& decomposition, double atoms) {
    using mpi_support::UsageError;
    const Vec3& box = decomposition.box();
    const std::string sides = fmt::format("{:.4g} x {:.4g} x {:.4g}", box[0], box[1], box[2]);
    const double longest = settings.precision == Precision::single_precision
                               ? std::numeric_limits<float>::max()
                               : std::numeric_limits<double>::max();
    double volume = 1.0, reached = 1.0, images = 1.0;
    for (std::size_t d = 0; d < 3; ++d) {
        if (!(box[d] > 0.0 && box[d] <= longest))
            throw UsageError(
                fmt::format("a box of {} is none: give another density, or other bounds", sides));
        const double side = box[d] / decomposition.grid()[d];
        volume *= box[d];
        reached *= side + 2.0 * settings.list_cutoff();
        images *= 2.0 * std::ceil(settings.list_cutoff() / side) + 1.0;
    }
    if (atoms / decomposition.ranks() > most_atoms_of_rank)
        throw UsageError(fmt::format(
            "{:.0f} atoms on {} ranks: a rank can have {:.0f}, so use {:.0f} ranks or more", atoms,
            decomposition.ranks(), most_atoms_of_rank, std::ceil(atoms / most_atoms_of_rank)));
    const double ghosts = atoms / volume * reached;
    if (images > most_images || !(ghosts <= most_atoms_of_rank) || settings.list_cutoff() >= filler_spacing)
        throw UsageError(fmt::format(
            "cutoff and skin together, {:g}, reach too far for a box of {} on {} ranks: {:.3g} copies of "
            "a rank's part, {:.3g} atoms; a larger box, fewer ranks or a smaller cutoff help",
            settings.list_cutoff(), sides, decomposition.ranks(), images, ghosts));
}

}  // namespace minimd
