// The kernels of libminimd-kernels.so for the embedded-atom method, and their arguments. See also
// runtime_kernels.h.
//
// The forces of a share are two or three kernels: the densities of interior pairs; the densities of pairs
// with ghosts, if the share has them; and the forces of all these pairs. The host does the work between them:
// it sends the densities of ghosts home, embeds the atoms and sends the derivatives to ghosts. The pairs that
// are in range stay on the device from the densities to the forces.
#pragma once

#include "minimd/offpath/runtime_kernels.h"

namespace minimd::runtime {

// Keeps the table of pairs (buffer 0) for all later steps.
constexpr const char* eam_table_symbol = "minimd_eam_table";

// Computes densities. The first buffer is a ForceAnswer. For a device that shares the host's memory, the
// others are positions and densities of all slots, rows and blocks. Other devices keep lists and positions.
// They get the positions that this part of the pairs needs, of own slots or of ghosts. For the last part,
// they return the densities of the given slots (given_end()).
constexpr const char* eam_densities_symbol = "minimd_eam_densities";

// Computes forces. The first buffer is a ForceAnswer. For a device that shares the host's memory, the others
// are positions, derivatives and forces of all slots. Other devices get the derivatives of all slots, and
// return the forces on the given slots.
constexpr const char* eam_forces_symbol = "minimd_eam_forces";

struct EamTableArguments {
    Numbers numbers;
    std::int32_t last_row = 0, unused = 0;
    double per_spacing = 1.0, cutoff = 0.0;
};

struct EamArguments {
    Numbers numbers;
    std::int32_t threads = 1, slowness = 1;  // `slowness`: how many times to compute everything
    std::int32_t energy = 0;                 // whether to compute energies and the virial
    std::int32_t boundary = 0;               // for densities: whether the pairs are those with ghosts
    std::int32_t alone = 0;                  // whether the share has no pairs with ghosts
    // Whether to add numbers for the blocks' atoms, too.
    std::int32_t interior_both_sides = 1, boundary_both_sides = 1;
    std::int32_t own_slots = 0, slots = 0;     // without and with ghosts
    std::int32_t interior_rows = 0, rows = 0;  // of the lists
    std::int32_t first_slot = 0;               // first slot that the pairs need, if alone
    std::int32_t ranges = 0;                   // number of ranges of interior rows
    RowRange range[most_ranges];

    bool both_sides(bool with_ghosts) const {
        return (with_ghosts ? boundary_both_sides : interior_both_sides) != 0;
    }
    // The device returns the densities and forces of slots from first_slot up to this one. It returns those
    // of ghosts only if pairs with ghosts are listed once.
    std::int32_t given_end() const { return alone == 0 && boundary_both_sides != 0 ? slots : own_slots; }
    std::int32_t given() const { return given_end() - first_slot; }

    std::size_t bytes() const {
        return offsetof(EamArguments, range) + static_cast<std::size_t>(ranges) * sizeof(RowRange);
    }
};
static_assert(sizeof(EamArguments) <= OFFPATH_KERNEL_ARGUMENT_BYTES);

}  // namespace minimd::runtime
