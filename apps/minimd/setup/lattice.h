// Atoms on a face-centred cubic lattice, with miniMD's positions and velocities.
//
// An atom's id is its place in the order of the lattice (x fastest, then y, then z), from 1. Its velocity and
// its type follow from that place alone. A system is therefore the same bit by bit on any number of ranks.
#pragma once

#include "minimd/base/atoms.h"
#include "minimd/base/settings.h"
#include "minimd/domain/decomposition.h"

namespace minimd {

// Returns the box that settings.unit_cells fill at settings.density.
Vec3 lattice_box(const Settings& settings);
std::int64_t lattice_atoms(const Settings& settings);

// Creates this rank's part of the system, at settings.temperature and with the centre of mass at rest. `box`
// is lattice_box(). `mass` is that of one atom. Collective over the decomposition's communicator.
System create_lattice(const Settings& settings, const Vec3& box, const Decomposition& decomposition,
                      double mass = 1.0);

}  // namespace minimd
