// What a host and its offpath device say to each other: the kernels of libminimd-kernels.so, which the device
// loads, and their arguments. Plain data; both sides have little-endian numbers of the same sizes.
#pragma once

#include <cstddef>
#include <cstdint>

#include <offpath/compute.h>

#include "minimd/kernels/kernels.h"

namespace minimd::runtime {

constexpr const char* library_name = "libminimd-kernels.so";

// Does the device have kernels for numbers of this kind in blocks of so many lanes? UNSUPPORTED if not.
constexpr const char* check_symbol = "minimd_check";

// Keeps copies of rows (buffer 0) and blocks (buffer 1) for the forces to come. For devices that would have
// to be sent them again for each step.
constexpr const char* lists_symbol = "minimd_lists";

// Forces over rows of the lists. Buffers: a ForceAnswer; then, for a device that shares the host's memory,
// positions and forces of all slots, rows and blocks; for others, which keep all these, the positions that
// this part of the step brings, if any, and the forces that it gives, if any.
constexpr const char* forces_symbol = "minimd_forces";

// Of a step's forces, which are computed at once, or as ghosts come and go. Each part adds to the forces.
enum class Part : std::int32_t {
    whole,     // brings positions of own slots from first_real on, gives forces on them
    first,     // brings positions of own slots
    boundary,  // brings positions of ghosts, gives forces on ghosts
    last       // gives forces on own slots
};
constexpr bool begins(Part part) {
    return part == Part::whole || part == Part::first;
}

struct Numbers {
    std::int32_t real_bytes = 8, lanes = 0;
};

// Rows first ... end - 1.
struct RowRange {
    std::int32_t first = 0, end = 0;
};
constexpr std::size_t most_ranges = 400;

struct ForceArguments {
    Numbers numbers;
    std::int32_t threads = 1, slowness = 1;  // everything so many times
    std::int32_t energy = 0;                 // wanted?
    std::int32_t both_sides = 1;             // forces on blocks' atoms too?
    Part part = Part::whole;
    std::int32_t ranges = 0;
    std::int64_t own_reals = 0, reals = 0;  // three a slot, and with ghosts
    std::int64_t first_real = 0;            // of own slots, the rows need none before this
    LjParameters parameters;
    RowRange range[most_ranges];

    std::size_t bytes() const {
        return offsetof(ForceArguments, range) + static_cast<std::size_t>(ranges) * sizeof(RowRange);
    }
};

static_assert(sizeof(ForceArguments) <= OFFPATH_KERNEL_ARGUMENT_BYTES);

struct ForceAnswer {
    EnergyVirial sum;               // pairs that are listed from both of their atoms count half
    double begin = 0.0, end = 0.0;  // seconds by a clock of the device
};

}  // namespace minimd::runtime
