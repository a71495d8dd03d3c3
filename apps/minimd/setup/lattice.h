// Atoms on a face-centred cubic lattice with miniMD's positions and velocities.
//
// An atom's id is its place in the lattice's order (x fastest, then y, then z), from 1; its velocity and its
// type follow from that alone, so a system is the same on any number of ranks, bit by bit.
#pragma once

#include "minimd/base/atoms.h"
#include "minimd/base/settings.h"
#include "minimd/domain/decomposition.h"

namespace minimd {

// The box that unit_cells of the density fill.
Vec3 lattice_box(const Settings& settings);
std::int64_t lattice_atoms(const Settings& settings);

// The rank's part: at settings.temperature, with the centre of mass at rest. `box` is lattice_box().
// `mass`: of an atom. Collective over the decomposition's communicator.
System create_lattice(const Settings& settings, const Vec3& box, const Decomposition& decomposition,
                      double mass = 1.0);

}  // namespace minimd
