#include "minimd/report/snapshots.h"

#include <utility>

#include "minimd/files/restart.h"

namespace minimd {

namespace {

System without_atoms(const System& system) {
    System shape;
    shape.box = system.box;
    shape.atoms = system.atoms;
    shape.types = system.types;
    shape.mass = system.mass;
    shape.density = system.density;
    return shape;
}

bool multiple(std::int64_t step, int every) {
    return every > 0 && step % every == 0;
}

}  // namespace

Snapshots::Snapshots(const Settings& settings, const System& system, const std::string& species,
                     MPI_Comm comm)
    : settings_(settings),
      system_(without_atoms(system)),
      comm_(comm),
      first_(system.step),
      last_(system.step + settings.steps) {
    if (settings.dump) dump_.emplace(*settings.dump, species, settings.timestep, comm);
}

bool Snapshots::dump_due(std::int64_t step) const {
    return dump_ && (step == first_ || step == last_ || multiple(step, settings_.dump_every));
}

bool Snapshots::restart_due(std::int64_t step) const {
    return settings_.restart_to &&
           (step == last_ || (step != first_ && multiple(step, settings_.restart_every)));
}

void Snapshots::write(std::int64_t step, AtomList atoms) {
    system_.step = step;
    system_.local = std::move(atoms);
    if (dump_due(step)) dump_->append(system_, step);
    if (restart_due(step)) write_restart(*settings_.restart_to, settings_, system_, comm_);
    system_.local = {};
}

}  // namespace minimd
