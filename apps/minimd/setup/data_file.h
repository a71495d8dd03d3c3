// LAMMPS data files of atomic systems, as they are.
//
// The header's counts and bounds, then the sections Atoms (id type x y z, and maybe three image flags),
// Velocities and Masses; other sections are skipped, and what miniMD has no atoms for is refused. Ids are 1
// to the number of atoms, in any order. The lower bounds become 0 and positions are wrapped into the box.
// Without Velocities, atoms are at rest. Rank 0 reads, and the others get chunks. All calls are collective;
// errors are UsageErrors on every rank, with file and line.
#pragma once

#include <mpi.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "minimd/base/atoms.h"
#include "minimd/domain/decomposition.h"
#include "minimd/setup/data_header.h"
#include "minimd/setup/line_source.h"

namespace minimd {

class DataFile {
  public:
    // Reads the header.
    DataFile(const std::string& path, MPI_Comm comm);

    const Vec3& box() const { return system_.box; }
    std::int64_t atoms() const { return system_.atoms; }
    // The atoms of this rank's subdomain; once. `notes` gets a line for each section that was skipped.
    System read(const Decomposition& decomposition, std::vector<std::string>& notes);

  private:
    MPI_Comm comm_;
    int rank_ = 0;
    System system_;  // without atoms
    // On rank 0, at the title of the first section or at the end.
    std::ifstream stream_;
    std::unique_ptr<LineSource> lines_;
    DataHeader header_;
};

}  // namespace minimd
