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
    // The factor of force and time step that gives the change of a velocity, apart from the mass.
    double acceleration;

    ThermoScales(Units units, std::int64_t atoms, double volume);
};

// Sums over one rank's atoms, or over all atoms.
struct ThermoSums {
    double kinetic = 0.0;  // sum of m v^2
    EnergyVirial potential;
    double atoms = 0.0;
};

template <typename Real>
double kinetic_sum(const Particles<Real>& particles, double mass);

// Computes a row from the sums over all ranks.
ThermoRow thermo_row(const ThermoScales& scales, const ThermoSums& all, std::int64_t step,
                     std::int64_t atoms);

}  // namespace minimd
