// What a run leaves on each rank: the thermodynamic table, the times, and what the rank had to do.
//
// The engine fills one Results a rank, with the same table on all of them. report/summary.h makes of them
// what the reports say.
#pragma once

#include <cstdint>
#include <vector>

#include "minimd/base/stopwatch.h"

namespace minimd {

struct ThermoRow {
    std::int64_t step = 0;
    double temperature = 0.0, energy = 0.0, pressure = 0.0;  // energy: potential, per atom
    double seconds = 0.0;                                    // since the first step
};

// Of one rank. What is not force, neighbour or communication is other.
struct Times {
    double total = 0.0;
    Elapsed force, neighbor, communication;
    // On a core: in all, and in calls that communicate.
    double cpu = 0.0, calls = 0.0;
    double computing() const { return cpu - calls; }
    double other() const { return total - force.wall - neighbor.wall - communication.wall; }
    double other_on_core() const { return cpu - force.core - neighbor.core - communication.core; }
};

// Of one rank and its device, over all steps that they share: seconds.
struct SharedTimes {
    double starting = 0.0;   // the host, handing over positions and lists
    double computing = 0.0;  // the host, its part of the pairs
    double waiting = 0.0;    // the host, for the device
    double device = 0.0;     // the device, its part of the pairs
    double between = 0.0;    // the device, from the start of its part until it was done, besides that
};

// Of one rank, after the last step.
struct Counts {
    std::int64_t atoms = 0;
    std::int64_t ghosts = 0;
    std::int64_t swapped = 0;  // atoms that are sent in one exchange of positions
    std::int64_t pairs = 0;    // in its neighbour lists
    // Over all steps: blocks of pairs that were computed where a device took part, those that it computed,
    // and bytes of ghosts that it took.
    std::int64_t shared_blocks = 0, device_blocks = 0, carried = 0;
};

struct Results {
    std::int64_t atoms = 0;
    std::int64_t steps = 0;
    std::vector<ThermoRow> thermo;
    Times times;
    SharedTimes shared;
    Counts counts;
    bool halo_kept = false;  // a device took the ghosts, to the end
};

}  // namespace minimd
