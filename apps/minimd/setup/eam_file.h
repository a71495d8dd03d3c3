// Files of embedded-atom potentials: DYNAMO's funcfl format, for one element.
//
// Line 1 is a title; line 2 atomic number, mass, lattice constant and structure; line 3 nrho, drho, nr, dr
// and cutoff; then nrho values of F(rho), nr of the effective charge Z(r), nr of the density, several a line.
#pragma once

#include <mpi.h>

#include <istream>
#include <string>
#include <vector>

#include "minimd/setup/eam_tables.h"

namespace minimd {

// Throws UsageError with name and line.
EamTables parse_funcfl(std::istream& in, const std::string& name);

// Where a file of this name is looked for, in this order: as it stands, then, if it has no folder, in those
// of LAMMPS_POTENTIALS and of LAMMPS's packages.
std::vector<std::string> eam_places(const std::string& name);

// Throws UsageError on every rank, which says where was looked. Collective.
EamTables read_eam(const std::string& name, MPI_Comm comm);

}  // namespace minimd
