// What a run leaves behind: the thermodynamic table, the times, and what a rank had to do.
//
// The engine fills one Results a rank, with the same table on all of them; summarise() makes of them what the
// reports say.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <vector>

#include "minimd/domain/stopwatch.h"
#include "minimd/report/spread.h"

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

// Of all ranks: the total is the slowest one's, the others are means.
struct MeanTimes {
    double total = 0.0, force = 0.0, neighbor = 0.0, communication = 0.0;
    double other() const { return total - force - neighbor - communication; }
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
    Counts counts;
    bool halo_kept = false;  // a device took the ghosts, to the end
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
