// The results of all ranks together, as the reports say them.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "minimd/base/results.h"
#include "minimd/report/spread.h"

namespace minimd {

// Of all ranks: the total is the slowest one's, the others are means.
struct MeanTimes {
    double total = 0.0, force = 0.0, neighbor = 0.0, communication = 0.0;
    double other() const { return total - force - neighbor - communication; }
};

// Of all ranks.
struct Summary {
    std::int64_t atoms = 0;
    std::int64_t steps = 0;
    int ranks = 1;
    std::vector<ThermoRow> thermo;
    MeanTimes times;
    MeanTimes on_core;  // without the time in which others had the rank's core; the total is a mean, too

    Spread force, neighbor, communication, other;       // seconds
    Spread local_atoms, ghosts, swapped, listed_pairs;  // numbers

    SharedTimes shared;         // means
    double device_share = 0.0;  // of all pairs where devices took part; 0 where none did
    double carried = 0.0;       // bytes of ghosts that devices took
    bool halo_kept = false;
    double computing = 0.0;  // seconds on a core outside of calls that communicate: mean

    double atom_steps() const { return static_cast<double>(atoms) * static_cast<double>(steps); }
    // Atom-steps a second; 0 where nothing was timed.
    double performance() const { return times.total > 0.0 ? atom_steps() / times.total : 0.0; }
};

// On every rank; collective.
Summary summarise(const Results& results, MPI_Comm comm);

}  // namespace minimd
