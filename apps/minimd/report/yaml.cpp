#include "minimd/report/yaml.h"

#include <cinttypes>

#include "minimd/report/screen.h"
#include "support/mpi_program.h"

namespace minimd {

namespace {

void print_configuration(std::FILE* out, const Settings& s, const System& system,
                         const std::array<int, 3>& bins, int ranks) {
    std::fprintf(out, "run_configuration: \n  variant: %s\n", variant_name);
    std::fprintf(out, "  mpi_processes: %i\n", ranks);
    std::fprintf(out, "  thread_teams: %i\n", s.teams);
    std::fprintf(out, "  threads: %i\n", s.threads);
    std::fprintf(out, "  datafile: %s\n", s.data_file ? s.data_file->c_str() : "None");
    std::fprintf(out, "  units: %s\n", s.units == Units::lj ? "LJ" : "METAL");
    std::fprintf(out, "  atoms: %" PRId64 "\n", system.atoms);
    std::fprintf(out, "  atom_types: %i\n", system.types);
    std::fprintf(out, "  system_size: %2.2f %2.2f %2.2f\n", system.box[0], system.box[1], system.box[2]);
    std::fprintf(out, "  unit_cells: %i %i %i\n", s.unit_cells[0], s.unit_cells[1], s.unit_cells[2]);
    std::fprintf(out, "  density: %f\n", system.density);
    std::fprintf(out, "  force_type: %s\n", s.potential == Potential::lj ? "LJ" : "EAM");
    std::fprintf(out, "  force_cutoff: %f\n", s.cutoff);
    std::fprintf(out, "  force_params: %2.2f %2.2f\n", s.epsilon, s.sigma);
    std::fprintf(out, "  neighbor_cutoff: %f\n", s.list_cutoff());
    std::fprintf(out, "  neighbor_type: %i\n", s.half_neigh);
    std::fprintf(out, "  neighbor_bins: %i %i %i\n", bins[0], bins[1], bins[2]);
    std::fprintf(out, "  neighbor_frequency: %i\n", s.reneighbor_every);
    std::fprintf(out, "  sort_frequency: %i\n", s.sort_interval());
    std::fprintf(out, "  timestep_size: %f\n", s.timestep);
    std::fprintf(out, "  thermo_frequency: %i\n", s.thermo_every);
    std::fprintf(out, "  ghost_newton: %i\n", s.ghost_newton ? 1 : 0);
    std::fprintf(out, "  use_intrinsics: %i\n", 0);
    std::fprintf(out, "  safe_exchange: %i\n", s.safe_exchange ? 1 : 0);
    std::fprintf(out, "  float_size: %i\n\n", s.precision == Precision::single_precision ? 4 : 8);
}

double conserved(const ThermoRow& row) {
    return 1.5 * row.temperature + row.energy;
}

void print_thermo(std::FILE* out, const std::vector<ThermoRow>& rows) {
    std::fprintf(out, "\n\nthermodynamic_output:\n");
    for (const ThermoRow& row : rows) {
        const double first = conserved(rows.front());
        std::fprintf(out, "  timestep: %" PRId64 " \n", row.step);
        std::fprintf(out, "      T*:           %15.10g \n", row.temperature);
        std::fprintf(out, "      U*:           %15.10g \n", row.energy);
        std::fprintf(out, "      P*:           %15.10g \n", row.pressure);
        std::fprintf(out, "      Conservation: %15.10g \n", first != 0.0 ? conserved(row) / first : 1.0);
    }
}

void print_times(std::FILE* out, const Settings& settings, const Summary& summary) {
    std::fprintf(out, "\n\ntime:\n  total:\n");
    std::fprintf(out, "    time: %g \n", summary.times.total);
    std::fprintf(out, "    performance: %10.5e \n", summary.performance());
    std::fprintf(out, "    performance_proc: %10.5e \n",
                 summary.performance() / summary.ranks / settings.threads);
    std::fprintf(out, "  force: %g\n", summary.times.force);
    std::fprintf(out, "  neigh: %g\n", summary.times.neighbor);
    std::fprintf(out, "  comm:  %g\n", summary.times.communication);
    std::fprintf(out, "  other: %g\n\n", summary.times.other());
}

void print_spread(std::FILE* out, const char* name, const Spread& spread) {
    std::fprintf(out, "# %s %g ave %g max %g min\n# Histogram:", name, spread.mean, spread.most,
                 spread.least);
    for (const int ranks : spread.histogram)
        std::fprintf(out, " %d", ranks);
    std::fprintf(out, "\n");
}

}  // namespace

std::string yaml_name(std::time_t now) {
    std::tm local{};
    localtime_r(&now, &local);
    char name[64] = "";
    std::strftime(name, sizeof name, "miniMD-%Y-%m-%d-%H-%M-%S.yaml", &local);
    return name;
}

void print_yaml(std::FILE* out, const Settings& settings, const System& system,
                const std::array<int, 3>& bins, const Summary& summary) {
    print_configuration(out, settings, system, bins, summary.ranks);
    print_thermo(out, summary.thermo);
    print_times(out, settings, summary);
    std::fprintf(out, "# Timing histograms \n");
    print_spread(out, "Force time:", summary.force);
    print_spread(out, "Neigh time:", summary.neighbor);
    print_spread(out, "Comm  time:", summary.communication);
    print_spread(out, "Other time:", summary.other);
    std::fprintf(out, "\n");
    print_spread(out, "Nlocal:    ", summary.local_atoms);
    print_spread(out, "Nghost:    ", summary.ghosts);
    print_spread(out, "Nswaps:    ", summary.swapped);
    print_spread(out, "Neighs:    ", summary.listed_pairs);
    std::fprintf(out, "# Total # of neighbors = %g\n\n", summary.listed_pairs.sum(summary.ranks));
    std::fflush(out);
}

void write_yaml(const Settings& settings, const System& system, const std::array<int, 3>& bins,
                const Summary& summary) {
    if (settings.yaml_output == 0) return;
    const std::string name = yaml_name(std::time(nullptr));
    std::FILE* file = std::fopen(name.c_str(), "w");
    if (file == nullptr) throw mpi_support::UsageError("cannot write '" + name + "' in the working folder");
    print_yaml(file, settings, system, bins, summary);
    const bool failed = std::ferror(file) != 0;
    if (std::fclose(file) != 0 || failed) throw mpi_support::UsageError("cannot write all of '" + name + "'");
    if (settings.yaml_screen && !settings.quiet()) print_yaml(stdout, settings, system, bins, summary);
}

}  // namespace minimd
