// A run on this rank: velocity-Verlet steps, re-neighbouring every so many of them, and the table of T, U and
// P.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "minimd/base/atoms.h"
#include "minimd/base/call_time.h"
#include "minimd/base/results.h"
#include "minimd/base/settings.h"
#include "minimd/cells/particles.h"
#include "minimd/domain/decomposition.h"
#include "minimd/dynamics/forces.h"
#include "minimd/dynamics/neighborhood.h"
#include "minimd/dynamics/step_partner.h"
#include "minimd/dynamics/thermo.h"
#include "minimd/setup/eam_tables.h"

namespace minimd {

template <typename Real>
class Simulation {
  public:
    // `settings`, `decomposition` and `tables` outlive this; `tables` is needed for Potential::eam only.
    // Collective, as all of it. Throws SimulationError; the constructor UsageError if settings and tables
    // do not fit.
    Simulation(const Settings& settings, const Decomposition& decomposition, const System& system,
               const EamTables* tables = nullptr);

    // Called on every rank when a row is there, which is the same everywhere.
    void on_row(std::function<void(const ThermoRow&)> call) { on_row_ = std::move(call); }

    // Called on every rank before the first step and after each; atoms() are then those of that step. What it
    // takes is in no time.
    void on_step(std::function<void(std::int64_t)> call) { on_step_ = std::move(call); }

    // Before run(): lets `partner` take part in the steps, or has `carrier` bring the ghosts. Local.
    void use(std::unique_ptr<StepPartner<Real>> partner);
    void use(std::unique_ptr<HaloCarrier<Real>> carrier);

    // What computes forces without a partner; a partner may call it in its steps.
    Forces<Real>& forces() { return *forces_; }

    Results run();

    // On all ranks, before they do something together in on_step()'s call.
    void settle() { neighborhood_.halo().settle(); }

    // This rank's atoms as they are now.
    AtomList atoms() const;

  private:
    void first_half();
    void second_half();
    void step(std::int64_t at);
    void thermo(std::int64_t at);
    void check_skin(std::int64_t at);
    void report_outrun();
    void after_step(std::int64_t at);
    double calls();
    void count();
    // Which of this rank's numbers is none.
    std::string bad_numbers(std::int64_t at) const;
    bool energy_due(std::int64_t at) const;

    const Settings& settings_;
    const Decomposition& decomposition_;
    const Kernels<Real>& kernels_;
    std::int64_t atoms_;
    double mass_;
    ThermoScales scales_;
    Real kick_;  // half a time step, over the mass
    Particles<Real> particles_;
    Neighborhood<Real> neighborhood_;
    std::unique_ptr<Forces<Real>> forces_;
    std::unique_ptr<HaloCarrier<Real>> carrier_;
    std::unique_ptr<StepPartner<Real>> partner_;
    EnergyVirial potential_;
    Results results_;
    std::int64_t first_step_ = 0;
    double began_ = 0.0, began_cpu_ = 0.0;
    CallTime calls_;  // but for those of the neighbourhood
    // The first time that an atom outran the skin, and the furthest of them since the last report.
    struct Outrun {
        double distance = 0.0;
        std::int64_t step = 0, atom = 0;
    } outrun_;
    bool outrun_reported_ = false;
    std::function<void(const ThermoRow&)> on_row_;
    std::function<void(std::int64_t)> on_step_;
};

}  // namespace minimd
