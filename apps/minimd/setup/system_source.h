// Where a run's atoms come from: a restart file, a LAMMPS data file, or else the lattice.
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

    // What the decomposition divides.
    virtual const Vec3& box() const = 0;
    // Of all ranks.
    virtual std::int64_t atoms() const = 0;
    // This rank's part; once. Collective.
    virtual System load(const Decomposition& decomposition) = 0;
    // What the report should say after load().
    const std::vector<std::string>& notes() const { return notes_; }

  protected:
    std::vector<std::string> notes_;
};

// What `settings` name. `mass` of the potential's file replaces every other one. `settings` has to outlive
// the result. Throws UsageError on every rank. Collective.
std::unique_ptr<SystemSource> open_source(const Settings& settings, MPI_Comm comm,
                                          std::optional<double> mass = std::nullopt);

}  // namespace minimd
