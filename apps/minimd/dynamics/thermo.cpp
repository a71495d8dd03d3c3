#include "minimd/dynamics/thermo.h"

namespace minimd {

ThermoScales::ThermoScales(Units units, std::int64_t atoms, double volume) {
    const double momenta = 3.0 * static_cast<double>(atoms) - 3.0;
    if (units == Units::lj) {
        freedom = momenta;
        temperature = 1.0 / freedom;
        pressure = 1.0 / (3.0 * volume);
        energy = 1.0;
        acceleration = 1.0;
    } else {
        constexpr double boltzmann = 8.617343e-05, mass_to_energy = 1.036427e-04, to_bar = 1.602176e+06;
        freedom = momenta * boltzmann;
        temperature = mass_to_energy / freedom;
        pressure = to_bar / (3.0 * volume);
        // miniMD's own factor: its energies in metal units are not electronvolts.
        energy = 2.0 * 524287.985533;
        acceleration = 1.0 / mass_to_energy;
    }
}

template <typename Real>
double kinetic_sum(const Particles<Real>& particles, double mass) {
    double sum = 0.0;
    for (std::size_t i = 0; i < particles.reals(particles.local_slots); ++i)
        sum += static_cast<double>(particles.v[i]) * static_cast<double>(particles.v[i]);
    return mass * sum;
}

template double kinetic_sum(const Particles<float>&, double);
template double kinetic_sum(const Particles<double>&, double);

ThermoRow thermo_row(const ThermoScales& scales, const ThermoSums& all, std::int64_t step,
                     std::int64_t atoms) {
    ThermoRow row;
    row.step = step;
    row.temperature = all.kinetic * scales.temperature;
    row.energy = all.potential.energy * scales.energy / static_cast<double>(atoms);
    row.pressure = (row.temperature * scales.freedom + all.potential.virial) * scales.pressure;
    return row;
}

}  // namespace minimd
