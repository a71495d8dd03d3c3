// The source of a run's atoms: a restart file, a LAMMPS data file, or else the lattice.
#pragma once

#include <mpi.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "minimd/base/atoms.h"
#include "minimd/base/settings.h"
#include "minimd/domain/decomposition.h"

namespace minimd {

class SystemSource {
  public:
    virtual ~SystemSource() = default;

    // The box that the decomposition divides.
    virtual const Vec3& box() const = 0;
    // The number of atoms of the whole system.
    virtual std::int64_t atoms() const = 0;
    // Returns this rank's part of the system. May be called once. Collective.
    virtual System load(const Decomposition& decomposition) = 0;
    // Remarks for the report, complete after load().
    const std::vector<std::string>& notes() const { return notes_; }

  protected:
    std::vector<std::string> notes_;
};

// Opens the source that `settings` name. `mass`, if given, is that of the potential's file and replaces every
// other one. `settings` must outlive the result. Throws UsageError on every rank. Collective.
std::unique_ptr<SystemSource> open_source(const Settings& settings, MPI_Comm comm,
                                          std::optional<double> mass = std::nullopt);

}  // namespace minimd
