#include "minimd/report/screen.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>

namespace minimd {

namespace {

// miniMD's files have 5 cells for 6 unit cells.
constexpr double bins_per_unit_cell = 5.0 / 6.0;
constexpr double atoms_per_bin = 16.0;

}  // namespace

std::array<int, 3> usual_bins(const Settings& settings, const System& system) {
    if (settings.bins) return {*settings.bins, *settings.bins, *settings.bins};
    std::array<int, 3> bins{};
    const bool from_lattice = !settings.data_file && !settings.restart_from;
    const double width = std::cbrt(system.density * atoms_per_bin);
    for (std::size_t d = 0; d < 3; ++d) {
        const double wanted =
            from_lattice ? bins_per_unit_cell * settings.unit_cells[d] : system.box[d] / width;
        bins[d] = std::max(1, static_cast<int>(std::min(wanted, 1e9)));
    }
    return bins;
}

Screen::Screen(const Settings& settings, int rank, std::FILE* out)
    : settings_(settings), out_(rank == 0 && !settings.quiet() ? out : nullptr) {}

void Screen::note(const std::string& text) const {
    if (out_ != nullptr) std::fprintf(out_, "# %s\n", text.c_str());
}

void Screen::begin() const {
    if (out_ == nullptr) return;
    std::fprintf(out_, "# Create System:\n");
    std::fflush(out_);
}

void Screen::header(const System& system, int ranks, const std::array<int, 3>& bins) const {
    if (out_ == nullptr) return;
    const Settings& s = settings_;
    std::fprintf(out_, "# Done .... \n# %s output ...\n# Run Settings: \n", variant_name);
    std::fprintf(out_, "\t# MPI processes: %i\n", ranks);
    std::fprintf(out_, "\t# OpenMP threads: %i\n", s.threads);
    std::fprintf(out_, "\t# Inputfile: %s\n", s.input_file.c_str());
    std::fprintf(out_, "\t# Datafile: %s\n", s.data_file ? s.data_file->c_str() : "None");
    std::fprintf(out_, "# Physics Settings: \n");
    std::fprintf(out_, "\t# ForceStyle: %s\n", s.potential == Potential::lj ? "LJ" : "EAM");
    std::fprintf(out_, "\t# Force Parameters: %2.2f %2.2f\n", s.epsilon, s.sigma);
    std::fprintf(out_, "\t# Units: %s\n", s.units == Units::lj ? "LJ" : "METAL");
    std::fprintf(out_, "\t# Atoms: %" PRId64 "\n", system.atoms);
    std::fprintf(out_, "\t# Atom types: %i\n", system.types);
    std::fprintf(out_, "\t# System size: %2.2f %2.2f %2.2f (unit cells: %i %i %i)\n", system.box[0],
                 system.box[1], system.box[2], s.unit_cells[0], s.unit_cells[1], s.unit_cells[2]);
    std::fprintf(out_, "\t# Density: %f\n", system.density);
    std::fprintf(out_, "\t# Force cutoff: %f\n", s.cutoff);
    std::fprintf(out_, "\t# Timestep size: %f\n", s.timestep);
    std::fprintf(out_, "# Technical Settings: \n");
    std::fprintf(out_, "\t# Neigh cutoff: %f\n", s.list_cutoff());
    std::fprintf(out_, "\t# Half neighborlists: %i\n", s.half_neigh);
    std::fprintf(out_, "\t# Neighbor bins: %i %i %i\n", bins[0], bins[1], bins[2]);
    std::fprintf(out_, "\t# Neighbor frequency: %i\n", s.reneighbor_every);
    std::fprintf(out_, "\t# Sorting frequency: %i\n", s.sort_interval());
    std::fprintf(out_, "\t# Thermo frequency: %i\n", s.thermo_every);
    std::fprintf(out_, "\t# Ghost Newton: %i\n", s.ghost_newton ? 1 : 0);
    std::fprintf(out_, "\t# Use intrinsics: %i\n", 0);
    std::fprintf(out_, "\t# Do safe exchange: %i\n", s.safe_exchange ? 1 : 0);
    std::fprintf(out_, "\t# Size of float: %i\n\n", s.precision == Precision::single_precision ? 4 : 8);
    std::fflush(out_);
}

void Screen::start() const {
    if (out_ == nullptr) return;
    std::fprintf(out_, "# Starting dynamics ...\n# Timestep T U P Time\n");
    std::fflush(out_);
}

void Screen::thermo(const ThermoRow& row) const {
    if (out_ == nullptr) return;
    std::fprintf(out_, "%" PRId64 " %e %e %e %6.3f\n", row.step, row.temperature, row.energy, row.pressure,
                 row.seconds);
    std::fflush(out_);
}

void Screen::summary(const Summary& summary) const {
    if (out_ == nullptr) return;
    const MeanTimes& times = summary.times;
    const double performance = summary.performance();
    std::fprintf(out_,
                 "\n\n# Performance Summary:\n"
                 "# MPI_proc OMP_threads nsteps natoms t_total t_force t_neigh t_comm t_other performance "
                 "perf/thread grep_string t_extra\n");
    std::fprintf(out_, "%i %i %" PRId64 " %" PRId64 " %f %f %f %f %f %f %f PERF_SUMMARY %f\n\n\n",
                 summary.ranks, settings_.threads, summary.steps, summary.atoms, times.total, times.force,
                 times.neighbor, times.communication, times.other(), performance,
                 performance / summary.ranks / settings_.threads, 0.0);
    std::fflush(out_);
}

}  // namespace minimd
