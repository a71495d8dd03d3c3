// Decides when a run writes frames of the dump and restart files, as the settings say, and writes them.
//
// There is a frame for the first step, for the last, and for each multiple of dump_every. A restart file is
// written after the last step and after each multiple of restart_every. All ranks act alike.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <string>

#include "minimd/base/atoms.h"
#include "minimd/base/settings.h"
#include "minimd/report/dump.h"

namespace minimd {

class Snapshots {
  public:
    // `system` is the state at the beginning of the run, at step system.step. Its local atoms are not kept.
    // `species` is their chemical symbol in dumps. `settings` must outlive this object.
    Snapshots(const Settings& settings, const System& system, const std::string& species, MPI_Comm comm);

    // Whether write() has something to do after this step.
    bool due(std::int64_t step) const { return dump_due(step) || restart_due(step); }
    // Writes what is due. `atoms` are this rank's. Collective. Throws UsageError, or std::runtime_error if
    // atoms are missing.
    void write(std::int64_t step, AtomList atoms);

  private:
    bool dump_due(std::int64_t step) const;
    bool restart_due(std::int64_t step) const;

    const Settings& settings_;
    System system_;
    MPI_Comm comm_;
    std::int64_t first_, last_;
    std::optional<DumpFile> dump_;
};

}  // namespace minimd
