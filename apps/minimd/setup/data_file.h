// LAMMPS data files of atomic systems.
//
// A file has a header with counts and bounds, then the sections Atoms (id type x y z, and optionally three
// image flags), Velocities and Masses. Other sections are skipped. Anything that an atomic system does not
// have is refused. The ids are 1 to the number of atoms, in any order. The lower bounds become 0, and
// positions are wrapped into the box. Without Velocities, atoms are at rest. Rank 0 reads the file and sends
// the others their atoms in chunks. All calls are collective. Errors are UsageErrors on every rank, with file
// and line.
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
    // Returns the atoms of this rank's subdomain. May be called once. Appends a line to `notes` for each
    // section that was skipped.
    System read(const Decomposition& decomposition, std::vector<std::string>& notes);

  private:
    MPI_Comm comm_;
    int rank_ = 0;
    System system_;  // without atoms
    // On rank 0, the stream is at the title of the first section, or at the end of the file.
    std::ifstream stream_;
    std::unique_ptr<LineSource> lines_;
    DataHeader header_;
};

}  // namespace minimd
