// Factors that turn masses, velocities and virials into temperatures and pressures, in each system of units.
#pragma once

#include <cstdint>

#include "minimd/base/settings.h"

namespace minimd {

struct UnitConstants {
    double mass_velocity2;  // energy of mass * velocity^2
    double boltzmann;       // energy per temperature
    double pressure;        // pressure of energy / volume
};

// The values that miniMD and LAMMPS compute with.
constexpr UnitConstants constants_of(Units units) {
    return units == Units::lj ? UnitConstants{1.0, 1.0, 1.0}
                              : UnitConstants{1.036427e-04, 8.617343e-05, 1.602176e+06};
}

// The degrees of freedom of `atoms` atoms whose centre of mass is at rest, times Boltzmann's constant.
constexpr double freedom_energy(Units units, std::int64_t atoms) {
    return static_cast<double>(3 * atoms - 3) * constants_of(units).boltzmann;
}

}  // namespace minimd
