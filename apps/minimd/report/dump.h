// Trajectories for viewers, as extended XYZ or LAMMPS's text dump. The file's name decides which.
//
// The first frame replaces the file, and later ones are appended. Atoms are in the order of their ids, and
// numbers have 10 digits. All ranks write at the same time, each a part of the ids. All calls are collective.
// Errors are UsageErrors on every rank.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include "minimd/base/atoms.h"
#include "minimd/files/dump_format.h"

namespace minimd {

class DumpFile {
  public:
    // dump_format_of(`path`) must return a format. `species` is the chemical symbol of all atoms in XYZ
    // files.
    DumpFile(std::string path, std::string species, double timestep, MPI_Comm comm);

    // Appends `system` as it is after `step`. Each rank gives its `local` atoms.
    void append(const System& system, std::int64_t step);

  private:
    std::string path_, species_;
    DumpFormat format_;
    double timestep_;
    MPI_Comm comm_;
    std::int64_t bytes_ = 0;  // of the frames written so far
};

}  // namespace minimd
