// When a run writes its atoms, and where: frames of the dump and restart files, as settings say.
//
// The first and the last step have a frame each, and those that are multiples of dump_every; a restart is
// written after the last step and after multiples of restart_every. All ranks act alike.
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
    // The run begins at system.step with `system`, whose local atoms are not kept. `species`: their chemical
    // symbol, in dumps. `settings` has to outlive this.
    Snapshots(const Settings& settings, const System& system, const std::string& species, MPI_Comm comm);

    // Whether write() has something to do after this step.
    bool due(std::int64_t step) const { return dump_due(step) || restart_due(step); }
    // Writes what is due, of these atoms of this rank. Collective. Throws UsageError, or std::runtime_error
    // when atoms are missing.
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
