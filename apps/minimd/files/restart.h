// Restart files: all atoms in full precision. Any number of ranks can continue from them.
//
// A file has a header of 128 bytes (magic, byte-order mark, version, a description of the system, checksums).
// One AtomRecord of 64 bytes for each atom follows, in the order of the ids. The file gets its name only when
// it is complete. All calls are collective. Errors are UsageErrors on every rank.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include "minimd/base/atoms.h"
#include "minimd/base/settings.h"
#include "minimd/domain/decomposition.h"

namespace minimd {

// Writes `system` as it is after `system.step`. Each rank gives its `local` atoms.
void write_restart(const std::string& path, const Settings& settings, const System& system, MPI_Comm comm);

// Returns the name of a restart file for `path` while it is being written.
std::string partial_restart(const std::string& path);

class RestartFile {
  public:
    // Reads the header, which must match settings.units and settings.potential.
    RestartFile(const std::string& path, const Settings& settings, MPI_Comm comm);

    const Vec3& box() const { return system_.box; }
    std::int64_t atoms() const { return system_.atoms; }
    // Returns the atoms of this rank's subdomain.
    System read(const Decomposition& decomposition) const;

  private:
    std::string path_;
    MPI_Comm comm_;
    System system_;  // without atoms
    std::uint64_t checksum_ = 0;
};

}  // namespace minimd
