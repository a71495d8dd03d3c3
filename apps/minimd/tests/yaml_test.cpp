#include "minimd/report/yaml.h"

#include <gtest/gtest.h>

#include "captured.h"
#include "minimd/report/screen.h"

namespace minimd {
namespace {

TEST(Yaml, HasMiniMDsKeys) {
    Settings settings;
    settings.threads = 2;
    settings.data_file = "1m.data";
    settings.units = Units::metal;
    System system;
    system.box = {10, 20, 30.125};
    system.atoms = 4000;
    system.types = 3;
    system.density = 0.5;
    Summary summary;
    summary.atoms = 4000;
    summary.steps = 10;
    summary.ranks = 2;
    summary.thermo = {{0, 1.0, -5.0, 2.0, 0.0}, {10, 0.5, -4.25, 2.5, 1.0}};
    summary.times = {4.0, 2.5, 0.75, 0.25};
    summary.force = {2.5, 3.0, 2.0, {1, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
    summary.listed_pairs = {7000, 8000, 6000, {1, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
    Captured out;
    print_yaml(out.file(), settings, system, {4, 5, 6}, summary);
    const std::string flat = "0 ave 0 max 0 min\n# Histogram: 0 0 0 0 0 0 0 0 0 0\n";
    EXPECT_EQ(out.text(), std::string("run_configuration: \n  variant: ") + variant_name +
                              "\n"
                              "  mpi_processes: 2\n"
                              "  thread_teams: 1\n"
                              "  threads: 2\n"
                              "  datafile: 1m.data\n"
                              "  units: METAL\n"
                              "  atoms: 4000\n"
                              "  atom_types: 3\n"
                              "  system_size: 10.00 20.00 30.12\n"
                              "  unit_cells: 32 32 32\n"
                              "  density: 0.500000\n"
                              "  force_type: LJ\n"
                              "  force_cutoff: 2.500000\n"
                              "  force_params: 1.00 1.00\n"
                              "  neighbor_cutoff: 2.800000\n"
                              "  neighbor_type: 1\n"
                              "  neighbor_bins: 4 5 6\n"
                              "  neighbor_frequency: 20\n"
                              "  sort_frequency: 20\n"
                              "  timestep_size: 0.005000\n"
                              "  thermo_frequency: 100\n"
                              "  ghost_newton: 1\n"
                              "  use_intrinsics: 0\n"
                              "  safe_exchange: 0\n"
                              "  float_size: 8\n"
                              "\n\n\n"
                              "thermodynamic_output:\n"
                              "  timestep: 0 \n"
                              "      T*:                         1 \n"
                              "      U*:                        -5 \n"
                              "      P*:                         2 \n"
                              "      Conservation:               1 \n"
                              "  timestep: 10 \n"
                              "      T*:                       0.5 \n"
                              "      U*:                     -4.25 \n"
                              "      P*:                       2.5 \n"
                              "      Conservation:               1 \n"
                              "\n\n"
                              "time:\n"
                              "  total:\n"
                              "    time: 4 \n"
                              "    performance: 1.00000e+04 \n"
                              "    performance_proc: 2.50000e+03 \n"
                              "  force: 2.5\n"
                              "  neigh: 0.75\n"
                              "  comm:  0.25\n"
                              "  other: 0.5\n"
                              "\n"
                              "# Timing histograms \n"
                              "# Force time: 2.5 ave 3 max 2 min\n"
                              "# Histogram: 1 0 0 0 0 0 0 0 0 1\n"
                              "# Neigh time: " +
                              flat + "# Comm  time: " + flat + "# Other time: " + flat +
                              "\n"
                              "# Nlocal:     " +
                              flat + "# Nghost:     " + flat + "# Nswaps:     " + flat +
                              "# Neighs:     7000 ave 8000 max 6000 min\n"
                              "# Histogram: 1 0 0 0 0 0 0 0 0 1\n"
                              "# Total # of neighbors = 14000\n"
                              "\n");
}

TEST(Yaml, IsNamedByTheTime) {
    setenv("TZ", "UTC", 1);
    tzset();
    EXPECT_EQ(yaml_name(0), "miniMD-1970-01-01-00-00-00.yaml");
    EXPECT_EQ(yaml_name(1700000000), "miniMD-2023-11-14-22-13-20.yaml");
}

}  // namespace
}  // namespace minimd
