// Temperature, potential energy and pressure, in the units and with the factors of miniMD.
#pragma once

#include <cstdint>

#include "minimd/base/results.h"
#include "minimd/base/settings.h"
#include "minimd/cells/particles.h"
#include "minimd/kernels/kernels.h"

namespace minimd {

struct ThermoScales {
    double temperature, energy, pressure, freedom;
    // What a force is multiplied with, beside the time step, to change a velocity (without the mass).
    double acceleration;

    ThermoScales(Units units, std::int64_t atoms, double volume);
};

// Sums over this rank's atoms.
struct ThermoSums {
    double kinetic = 0.0;  // m v^2
    EnergyVirial potential;
    double atoms = 0.0;
};

template <typename Real>
double kinetic_sum(const Particles<Real>& particles, double mass);

// From sums over all ranks.
ThermoRow thermo_row(const ThermoScales& scales, const ThermoSums& all, std::int64_t step,
                     std::int64_t atoms);

}  // namespace minimd
