// Trajectories for viewers: extended XYZ or LAMMPS's text dump, by the file's name.
//
// Frames follow each other in the file, which the first one begins anew; atoms are in the order of their ids.
// Numbers have 10 digits. All ranks write at once, each a part of the ids. All calls are collective; errors
// are UsageErrors on every rank.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include "minimd/base/atoms.h"
#include "minimd/files/dump_format.h"

namespace minimd {

class DumpFile {
  public:
    // `path` ends as dump_format_of() wants it. `species`: the chemical symbol that XYZ calls all atoms by.
    DumpFile(std::string path, std::string species, double timestep, MPI_Comm comm);

    // Adds `system`, each rank its `local` atoms, as of `step`.
    void append(const System& system, std::int64_t step);

  private:
    std::string path_, species_;
    DumpFormat format_;
    double timestep_;
    MPI_Comm comm_;
    std::int64_t bytes_ = 0;  // of the frames before
};

}  // namespace minimd
