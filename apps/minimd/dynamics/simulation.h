// A run on this rank: velocity-Verlet steps, a re-neighbouring at a fixed interval of steps, and the table of
// T, U and P.
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
    // `settings`, `decomposition` and `tables` must outlive this object. `tables` is needed for
    // Potential::eam only. All functions are collective unless stated otherwise, and throw SimulationError.
    // The constructor throws UsageError if settings and tables do not fit together.
    Simulation(const Settings& settings, const Decomposition& decomposition, const System& system,
               const EamTables* tables = nullptr);

    // `call` is called on every rank when a row is complete. The row is the same on all ranks.
    void on_row(std::function<void(const ThermoRow&)> call) { on_row_ = std::move(call); }

    // `call` is called on every rank before the first step and after each step. atoms() then returns the
    // atoms of that step. The time that `call` takes is not measured.
    void on_step(std::function<void(std::int64_t)> call) { on_step_ = std::move(call); }

    // Lets `partner` take part in the steps, or `carrier` move the ghosts. To be called before run(). Local.
    void use(std::unique_ptr<StepPartner<Real>> partner);
    void use(std::unique_ptr<HaloCarrier<Real>> carrier);

    // What computes the forces without a partner. A partner may call it in its steps.
    Forces<Real>& forces() { return *forces_; }

    Results run();

    // All ranks call this before they communicate in on_step()'s call.
    void settle() { neighborhood_.halo().settle(); }

    // This rank's current atoms.
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
    // Describes the first of this rank's numbers that is not finite.
    std::string bad_numbers(std::int64_t at) const;
    bool energy_due(std::int64_t at) const;

    const Settings& settings_;
    const Decomposition& decomposition_;
    const Kernels<Real>& kernels_;
    std::int64_t atoms_;
    double mass_;
    ThermoScales scales_;
    Real kick_;  // half a time step divided by the mass
    Particles<Real> particles_;
    Neighborhood<Real> neighborhood_;
    std::unique_ptr<Forces<Real>> forces_;
    std::unique_ptr<HaloCarrier<Real>> carrier_;
    std::unique_ptr<StepPartner<Real>> partner_;
    EnergyVirial potential_;
    Results results_;
    std::int64_t first_step_ = 0;
    double began_ = 0.0, began_cpu_ = 0.0;
    CallTime calls_;  // without the calls of the neighbourhood
    // The first time that an atom outran the skin, and the furthest distance since the last report.
    struct Outrun {
        double distance = 0.0;
        std::int64_t step = 0, atom = 0;
    } outrun_;
    bool outrun_reported_ = false;
    std::function<void(const ThermoRow&)> on_row_;
    std::function<void(std::int64_t)> on_step_;
};

}  // namespace minimd
