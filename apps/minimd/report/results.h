// What a run leaves behind: the thermodynamic table and the times.
#pragma once

#include <cstdint>
#include <vector>

namespace minimd {

struct ThermoRow {
    std::int64_t step = 0;
    double temperature = 0.0, energy = 0.0, pressure = 0.0;  // energy: potential, per atom
    double seconds = 0.0;                                    // since the first step
};

// Of one rank. What is not force, neighbour or communication is other.
struct Times {
    double total = 0.0, force = 0.0, neighbor = 0.0, communication = 0.0;
    double other() const { return total - force - neighbor - communication; }
};

struct Results {
    std::int64_t atoms = 0;
    std::int64_t steps = 0;
    std::vector<ThermoRow> thermo;
    Times times;
};

}  // namespace minimd
