// What a run is asked to do: the keys of miniMD's input file, its flags, and ours.
//
// Filled by input_file.h and then command_line.h, the same on every rank; constant afterwards. Units are
// those of `units`: reduced Lennard-Jones units, or metal (angstrom, picosecond, electronvolt, kelvin, bar).
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

// Which pairs a rank lists. `half`: each pair once; `full`: each pair from both of its atoms.
enum class ListKind { half, full };

// Section IV of "Smarter NICs for faster molecular dynamics" (IPDPS 2022), as it stands (`paper`), or with
// the work of every step shared by measured speed (`balanced`).
enum class OffPath { none, paper, balanced };

// What a device is: a rank of the job, or what runs kernels, by offpath's runtime or in OpenMP target
// regions.
enum class DeviceKind { ranks, runtime, openmp };

// Who simulates in a job with device ranks, where no device has a part of its own: its hosts, its devices, or
// all as equals.
enum class Where { hosts, devices, all };

// How ghosts travel: with MPI, waited for where it is started, or while pairs without ghosts are computed, or
// with MPI called between those too; or by group schedules of offpath's devices.
enum class HaloKind { blocking, overlapped, polled, offloaded };

// What happens when an atom has moved more than half the skin since the lists were built.
enum class SkinCheck { off, warn, error };

struct Settings {
    // The input file, line by line.
    std::string input_file = "in.lj.miniMD";
    Units units = Units::lj;
    std::optional<std::string> data_file;  // LAMMPS data; none: an fcc lattice
    Potential potential = Potential::lj;
    double epsilon = 1.0, sigma = 1.0;          // Lennard-Jones
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
    int teams = 1;       // of threads; accepted, and one is used
    int half_neigh = 1;  // 1 or -1: half lists; 0: full ones
    bool ghost_newton = true;
    std::optional<int> bins;        // -b: cells of the neighbour grid in each dimension
    std::optional<int> sort_every;  // --sort; 0: never
    int types = 4;
    bool check_exchange = false;
    bool safe_exchange = false;
    int yaml_output = 0;
    bool yaml_screen = false;
    std::string eam_file = "Cu_u6.eam";

    // Ours.
    Precision precision = Precision::double_precision;
    OffPath offpath = OffPath::none;
    HaloKind halo = HaloKind::overlapped;
    bool tunnel = false;          // ghosts travel from device to device
    bool split_boundary = false;  // the device computes the pairs that need ghosts
    DeviceKind device = DeviceKind::ranks;
    double device_share = -1.0;        // of the interior pairs; negative: by measured speed
    bool share_ordinary_steps = true;  // or only those with a rebuild
    bool device_ghosts = true;         // balanced: devices move the ghosts of ordinary steps too
    bool device_trials = true;         // balanced: hosts alone are tried now and then, and may be left alone
    int device_threads = 0;            // 0: as many as a host's
    int device_slowness = 1;           // every force on a device is computed so many times
    Where where = Where::hosts;
    int lanes = 0;      // of the kernels' vectors; 0: those that are fastest here
    int intensity = 1;  // evaluations of a pair's force, of which the mean counts; >= 1
    std::optional<std::string> json;
    std::optional<std::string> restart_from, restart_to;
    int restart_every = 0;  // 0: at the end only
    std::optional<std::string> dump;
    int dump_every = 0;  // 0: first and last step only
    SkinCheck skin_check = SkinCheck::warn;

    // Lines that the report says before the run: what was assumed, what is ignored.
    std::vector<std::string> notes;

    bool needs_device() const { return offpath != OffPath::none || tunnel || split_boundary; }
    double list_cutoff() const { return cutoff + skin; }
    // Steps between sorts of the atoms, 0: never.
    int sort_interval() const { return sort_every.value_or(reneighbor_every); }
    // Standard output belongs to the line of JSON.
    bool quiet() const { return json == "-"; }
    ListKind list_kind() const { return half_neigh == 0 ? ListKind::full : ListKind::half; }
};

}  // namespace minimd
