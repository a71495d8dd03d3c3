// Files of embedded-atom potentials in DYNAMO's funcfl format, for one element.
//
// Line 1 is a title. Line 2 has the atomic number, mass, lattice constant and structure. Line 3 has nrho,
// drho, nr, dr and the cutoff. The nrho values of F(rho), nr values of the effective charge Z(r) and nr
// values of the density follow, several on a line.
#pragma once

#include <mpi.h>

#include <istream>
#include <string>
#include <vector>

#include "minimd/setup/eam_tables.h"

namespace minimd {

// Parses the file's text. `name` appears in errors. Throws UsageError with name and line.
EamTables parse_funcfl(std::istream& in, const std::string& name);

// Returns the paths at which a file of this name is looked for, in order: the name as given; then, if it has
// no folder, the folders of LAMMPS_POTENTIALS and those of LAMMPS's packages.
std::vector<std::string> eam_places(const std::string& name);

// Reads the first of these files that exists. Throws UsageError on every rank, which lists the paths that
// were tried. Collective.
EamTables read_eam(const std::string& name, MPI_Comm comm);

}  // namespace minimd
