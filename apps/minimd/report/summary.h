// The results of all ranks together, as the reports print them.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "minimd/base/results.h"
#include "minimd/report/spread.h"

namespace minimd {

// Times in seconds. The total is the slowest rank's, the others are means over the ranks.
struct MeanTimes {
    double total = 0.0, force = 0.0, neighbor = 0.0, communication = 0.0;
    double other() const { return total - force - neighbor - communication; }
};

// The results of all ranks.
struct Summary {
    std::int64_t atoms = 0;
    std::int64_t steps = 0;
    int ranks = 1;
    std::vector<ThermoRow> thermo;
    MeanTimes times;
    MeanTimes on_core;  // time on a core: without the time in which other processes had the core; the total
                        // is a mean, too

    Spread force, neighbor, communication, other;       // seconds
    Spread local_atoms, ghosts, swapped, listed_pairs;  // numbers

    SharedTimes shared;         // means
    double device_share = 0.0;  // of all pairs in steps with devices; 0 without devices
    double carried = 0.0;       // bytes of ghosts that devices moved
    bool halo_kept = false;
    double computing = 0.0;  // seconds on a core outside of calls that communicate; mean

    double atom_steps() const { return static_cast<double>(atoms) * static_cast<double>(steps); }
    // Atom-steps per second, or 0 if nothing was timed.
    double performance() const { return times.total > 0.0 ? atom_steps() / times.total : 0.0; }
};

// Returns the summary on every rank. Collective.
Summary summarise(const Results& results, MPI_Comm comm);

}  // namespace minimd
