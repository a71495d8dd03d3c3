// What a run is asked to do: the keys of miniMD's input file, its flags, and this program's own.
//
// input_file.h and then command_line.h fill the settings, with the same values on every rank. They are
// constant afterwards. Units are those of `units`: reduced Lennard-Jones units, or metal (angstrom,
// picosecond, electronvolt, kelvin, bar).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace minimd {

enum class Units { lj, metal };
enum class Potential { lj, eam };
enum class Precision { single_precision, double_precision };

// Which pairs a rank lists. `half`: each pair once. `full`: each pair from both of its atoms.
enum class ListKind { half, full };

// How a device takes part in the forces. `paper`: as in section IV of "Smarter NICs for faster molecular
// dynamics" (IPDPS 2022). `balanced`: host and device share the work of every step by measured speed.
enum class OffPath { none, paper, balanced };

// What a device is: a rank of the job; or the target of kernels, through offpath's runtime or OpenMP target
// regions.
enum class DeviceKind { ranks, runtime, openmp };

// Which processes simulate in a job with device ranks if no device has a part of its own: the hosts, the
// devices, or all as equals.
enum class Where { hosts, devices, all };

// How ghosts travel. `blocking`: MPI moves them, and the rank waits where it starts a move. `overlapped`: MPI
// moves them while the rank computes pairs without ghosts. `polled`: the rank also calls MPI between those
// pairs. `offloaded`: group schedules of offpath's devices move them.
enum class HaloKind { blocking, overlapped, polled, offloaded };

// What happens when an atom has moved more than half the skin since the lists were built.
enum class SkinCheck { off, warn, error };

struct Settings {
    // The lines of the input file.
    std::string input_file = "in.lj.miniMD";
    Units units = Units::lj;
    std::optional<std::string> data_file;  // LAMMPS data file; without one, the atoms are on an fcc lattice
    Potential potential = Potential::lj;
    double epsilon = 1.0, sigma = 1.0;          // of Lennard-Jones
    std::array<int, 3> unit_cells{32, 32, 32};  // of 4 atoms each
    int steps = 100;
    double timestep = 0.005;
    double temperature = 1.44;
    double density = 0.8442;  // atoms per volume
    int reneighbor_every = 20;
    double cutoff = 2.5, skin = 0.3;
    int thermo_every = 100;  // 0: first and last step only

    // miniMD's flags.
    int threads = 1;
    int teams = 1;       // of threads; accepted, but one is used
    int half_neigh = 1;  // 1 or -1: half lists; 0: full lists
    bool ghost_newton = true;
    std::optional<int> bins;        // -b: cells of the neighbour grid in each dimension
    std::optional<int> sort_every;  // --sort; 0: never
    int types = 4;
    bool check_exchange = false;
    bool safe_exchange = false;
    int yaml_output = 0;
    bool yaml_screen = false;
    std::string eam_file = "Cu_u6.eam";

    // This program's own flags.
    Precision precision = Precision::double_precision;
    OffPath offpath = OffPath::none;
    HaloKind halo = HaloKind::overlapped;
    bool tunnel = false;          // ghosts travel from device to device
    bool split_boundary = false;  // the device computes the pairs that need ghosts
    DeviceKind device = DeviceKind::ranks;
    double device_share = -1.0;        // of the interior pairs; negative: by measured speed
    bool share_ordinary_steps = true;  // false: only steps with a rebuild
    bool device_ghosts = true;         // balanced: devices move the ghosts of ordinary steps, too
    bool device_trials = true;         // balanced: now and then, try hosts alone, and keep the faster way
    int device_threads = 0;            // 0: as many as a host's
    int device_slowness = 1;           // a device computes every force this many times
    Where where = Where::hosts;
    int lanes = 0;      // of the kernels' vectors; 0: the number that is fastest here
    int intensity = 1;  // evaluations of a pair's force, whose mean is used; >= 1
    std::optional<std::string> json;
    std::optional<std::string> restart_from, restart_to;
    int restart_every = 0;  // 0: at the end only
    std::optional<std::string> dump;
    int dump_every = 0;  // 0: first and last step only
    SkinCheck skin_check = SkinCheck::warn;

    // Lines that the report prints before the run: assumptions, and settings that are ignored.
    std::vector<std::string> notes;

    bool needs_device() const { return offpath != OffPath::none || tunnel || split_boundary; }
    double list_cutoff() const { return cutoff + skin; }
    // Steps between sorts of the atoms; 0: never.
    int sort_interval() const { return sort_every.value_or(reneighbor_every); }
    // Whether standard output is reserved for the line of JSON.
    bool quiet() const { return json == "-"; }
    ListKind list_kind() const { return half_neigh == 0 ? ListKind::full : ListKind::half; }
};

}  // namespace minimd
