// The kernels of libminimd-kernels.so for the embedded-atom method, and their arguments; as
// runtime_kernels.h.
//
// A share's forces are two or three kernels: densities of interior pairs, then of pairs with ghosts if it has
// them, then the forces of all these. What is between them (densities of ghosts go home, atoms are embedded,
// derivatives go to ghosts) is the host's. The pairs that are in range stay on the device from the densities
// to the forces.
#pragma once

#include "minimd/offpath/runtime_kernels.h"

namespace minimd::runtime {

// Keeps the table of pairs (buffer 0) for all steps to come.
constexpr const char* eam_table_symbol = "minimd_eam_table";

// Buffers: a ForceAnswer; then, for a device that shares the host's memory, positions and densities of all
// slots, rows and blocks; for others, which keep lists and positions, the positions that this part of the
// pairs needs (own slots; ghosts) and, of the last part, the densities of given slots.
constexpr const char* eam_densities_symbol = "minimd_eam_densities";

// Buffers: a ForceAnswer; then, for a device that shares the host's memory, positions, derivatives and
// forces of all slots; for others the derivatives of all, and the forces on given slots.
constexpr const char* eam_forces_symbol = "minimd_eam_forces";

struct EamTableArguments {
    Numbers numbers;
    std::int32_t last_row = 0, unused = 0;
    double per_spacing = 1.0, cutoff = 0.0;
};

struct EamArguments {
    Numbers numbers;
    std::int32_t threads = 1, slowness = 1;  // everything so many times
    std::int32_t energy = 0;                 // wanted? and the virial
    std::int32_t boundary = 0;               // densities: of the pairs with ghosts, not of the interior ones
    std::int32_t alone = 0;                  // there are none with ghosts
    // Numbers for the blocks' atoms too?
    std::int32_t interior_both_sides = 1, boundary_both_sides = 1;
    std::int32_t own_slots = 0, slots = 0;     // without and with ghosts
    std::int32_t interior_rows = 0, rows = 0;  // of the lists
    std::int32_t first_slot = 0;               // that the pairs need, if alone
    std::int32_t ranges = 0;                   // of interior rows
    RowRange range[most_ranges];

    bool both_sides(bool with_ghosts) const {
        return (with_ghosts ? boundary_both_sides : interior_both_sides) != 0;
    }
    // Given are the densities and forces of slots from first_slot up to this. Ghosts have some only where
    // pairs with them are listed once.
    std::int32_t given_end() const { return alone == 0 && boundary_both_sides != 0 ? slots : own_slots; }
    std::int32_t given() const { return given_end() - first_slot; }

    std::size_t bytes() const {
        return offsetof(EamArguments, range) + static_cast<std::size_t>(ranges) * sizeof(RowRange);
    }
};
static_assert(sizeof(EamArguments) <= OFFPATH_KERNEL_ARGUMENT_BYTES);

}  // namespace minimd::runtime
