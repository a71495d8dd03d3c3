// Restart files: all atoms in full precision, to go on from on any number of ranks.
//
// A header of 128 bytes (magic, byte-order mark, version, what the system is, checksums), then one AtomRecord
// of 64 bytes for each atom, in the order of their ids. The file appears under its name when it is complete.
// All calls are collective; errors are UsageErrors on every rank.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include "minimd/base/atoms.h"
#include "minimd/base/settings.h"
#include "minimd/domain/decomposition.h"

namespace minimd {

// Writes `system`, each rank its `local` atoms, as of `system.step`.
void write_restart(const std::string& path, const Settings& settings, const System& system, MPI_Comm comm);

// Where a restart file for `path` stands while it is written.
std::string partial_restart(const std::string& path);

class RestartFile {
  public:
    // Reads the header, which has to fit settings.units and settings.potential.
    RestartFile(const std::string& path, const Settings& settings, MPI_Comm comm);

    const Vec3& box() const { return system_.box; }
    std::int64_t atoms() const { return system_.atoms; }
    // The atoms of this rank's subdomain.
    System read(const Decomposition& decomposition) const;

  private:
    std::string path_;
    MPI_Comm comm_;
    System system_;  // without atoms
    std::uint64_t checksum_ = 0;
};

}  // namespace minimd
