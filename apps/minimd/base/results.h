// What a run leaves on each rank: the thermodynamic table, the times, and the amount of work.
//
// The engine fills one Results on each rank, with the same table on all of them. report/summary.h combines
// them for the reports.
#pragma once

#include <cstdint>
#include <vector>

#include "minimd/base/stopwatch.h"

namespace minimd {

struct ThermoRow {
    std::int64_t step = 0;
    double temperature = 0.0, energy = 0.0, pressure = 0.0;  // potential energy, per atom
    double seconds = 0.0;                                    // since the first step
};

// One rank's times, in seconds. What is not force, neighbour or communication is other.
struct Times {
    double total = 0.0;
    Elapsed force, neighbor, communication;
    // Time on a core: the total, and the part in calls that communicate.
    double cpu = 0.0, calls = 0.0;
    double computing() const { return cpu - calls; }
    double other() const { return total - force.wall - neighbor.wall - communication.wall; }
    double other_on_core() const { return cpu - force.core - neighbor.core - communication.core; }
};

// Seconds of one rank and its device, summed over all steps that they share.
struct SharedTimes {
    double starting = 0.0;   // the host hands over positions and lists
    double computing = 0.0;  // the host computes its part of the pairs
    double waiting = 0.0;    // the host waits for the device
    double device = 0.0;     // the device computes its part of the pairs
    double between = 0.0;    // from the start of the device's part until its end, without `device`
};

// One rank's numbers after the last step.
struct Counts {
    std::int64_t atoms = 0;
    std::int64_t ghosts = 0;
    std::int64_t swapped = 0;  // atoms sent in one exchange of positions
    std::int64_t pairs = 0;    // in this rank's neighbour lists
    // Over all steps: blocks of pairs in steps with a device, the blocks among them that the device computed,
    // and the bytes of ghosts that it moved.
    std::int64_t shared_blocks = 0, device_blocks = 0, carried = 0;
};

struct Results {
    std::int64_t atoms = 0;
    std::int64_t steps = 0;
    std::vector<ThermoRow> thermo;
    Times times;
    SharedTimes shared;
    Counts counts;
    bool halo_kept = false;  // a device moved the ghosts until the end
};

}  // namespace minimd
