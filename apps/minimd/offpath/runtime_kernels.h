// The interface between a host and its offpath device: the kernels of libminimd-kernels.so, which the device
// loads, and their arguments. These are plain data. Both sides have little-endian numbers of the same sizes.
#pragma once

#include <cstddef>
#include <cstdint>

#include <offpath/compute.h>

#include "minimd/kernels/kernels.h"

namespace minimd::runtime {

constexpr const char* library_name = "libminimd-kernels.so";

// Checks whether the device has kernels for these numbers and lanes. Fails with UNSUPPORTED if not.
constexpr const char* check_symbol = "minimd_check";

// Keeps copies of rows (buffer 0) and blocks (buffer 1) for later forces, on devices to which the host would
// otherwise have to send them in each step.
constexpr const char* lists_symbol = "minimd_lists";

// Computes forces over rows of the lists. The first buffer is a ForceAnswer. For a device that shares the
// host's memory, the others are positions and forces of all slots, rows and blocks. Other devices keep all
// these, so they get the positions that this part of the step brings, if any, and return the forces that it
// gives, if any.
constexpr const char* forces_symbol = "minimd_forces";

// A part of a step's forces. They are computed as a whole, or in parts while ghosts travel. Each part adds to
// the forces.
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
    std::int32_t threads = 1, slowness = 1;  // `slowness`: how many times to compute everything
    std::int32_t energy = 0;                 // whether to compute energy and virial
    std::int32_t both_sides = 1;             // whether to add forces on blocks' atoms, too
    Part part = Part::whole;
    std::int32_t ranges = 0;
    std::int64_t own_reals = 0, reals = 0;  // three for each slot: without and with ghosts
    std::int64_t first_real = 0;            // the rows need no real of own slots before this one
    LjParameters parameters;
    RowRange range[most_ranges];

    std::size_t bytes() const {
        return offsetof(ForceArguments, range) + static_cast<std::size_t>(ranges) * sizeof(RowRange);
    }
};

static_assert(sizeof(ForceArguments) <= OFFPATH_KERNEL_ARGUMENT_BYTES);

struct ForceAnswer {
    EnergyVirial sum;               // pairs that are listed from both of their atoms count half
    double begin = 0.0, end = 0.0;  // seconds by the device's clock
};

}  // namespace minimd::runtime
