#include <gtest/gtest.h>

#include "captured.h"
#include "minimd/report/json.h"
#include "minimd/report/screen.h"

namespace minimd {
namespace {

System lattice_of_864000() {
    System system;
    system.box = {100.776, 100.776, 100.776};
    system.atoms = 864000;
    system.types = 4;
    system.density = 0.8442;
    return system;
}

Settings settings_of_864000() {
    Settings settings;
    settings.unit_cells = {60, 60, 60};
    settings.threads = 16;
    settings.half_neigh = 0;
    return settings;
}

Summary summary_of_864000() {
    Summary summary;
    summary.atoms = 864000;
    summary.steps = 100;
    summary.ranks = 2;
    summary.thermo = {{0, 1.44, -6.773368, -5.019671, 0.0}, {100, 0.73106290, -5.712170, 1.204577, 3.65}};
    summary.times = {4.0, 2.5, 0.75, 0.25};
    summary.on_core = {3.75, 2.25, 0.75, 0.25};
    summary.shared = {0.125, 0.5, 0.25, 1.0, 0.0625};
    return summary;
}

// This is miniMD's format, which users' scripts parse.
TEST(Screen, SaysWhatMiniMDSays) {
    Captured out;
    const Settings settings = settings_of_864000();
    const System system = lattice_of_864000();
    const Screen screen(settings, 0, out.file());
    screen.begin();
    screen.header(system, 2, usual_bins(settings, system));
    screen.start();
    for (const ThermoRow& row : summary_of_864000().thermo)
        screen.thermo(row);
    screen.summary(summary_of_864000());
    EXPECT_EQ(out.text(), std::string("# Create System:\n"
                                      "# Done .... \n"
                                      "# ") +
                              variant_name +
                              " output ...\n"
                              "# Run Settings: \n"
                              "\t# MPI processes: 2\n"
                              "\t# OpenMP threads: 16\n"
                              "\t# Inputfile: in.lj.miniMD\n"
                              "\t# Datafile: None\n"
                              "# Physics Settings: \n"
                              "\t# ForceStyle: LJ\n"
                              "\t# Force Parameters: 1.00 1.00\n"
                              "\t# Units: LJ\n"
                              "\t# Atoms: 864000\n"
                              "\t# Atom types: 4\n"
                              "\t# System size: 100.78 100.78 100.78 (unit cells: 60 60 60)\n"
                              "\t# Density: 0.844200\n"
                              "\t# Force cutoff: 2.500000\n"
                              "\t# Timestep size: 0.005000\n"
                              "# Technical Settings: \n"
                              "\t# Neigh cutoff: 2.800000\n"
                              "\t# Half neighborlists: 0\n"
                              "\t# Neighbor bins: 50 50 50\n"
                              "\t# Neighbor frequency: 20\n"
                              "\t# Sorting frequency: 20\n"
                              "\t# Thermo frequency: 100\n"
                              "\t# Ghost Newton: 1\n"
                              "\t# Use intrinsics: 0\n"
                              "\t# Do safe exchange: 0\n"
                              "\t# Size of float: 8\n"
                              "\n"
                              "# Starting dynamics ...\n"
                              "# Timestep T U P Time\n"
                              "0 1.440000e+00 -6.773368e+00 -5.019671e+00  0.000\n"
                              "100 7.310629e-01 -5.712170e+00 1.204577e+00  3.650\n"
                              "\n\n"
                              "# Performance Summary:\n"
                              "# MPI_proc OMP_threads nsteps natoms t_total t_force t_neigh t_comm t_other "
                              "performance perf/thread grep_string t_extra\n"
                              "2 16 100 864000 4.000000 2.500000 0.750000 0.250000 0.500000 21600000.000000 "
                              "675000.000000 PERF_SUMMARY 0.000000\n"
                              "\n\n");
}

TEST(Screen, IsSilentOnOtherRanksAndBesideJson) {
    Captured out;
    Settings settings = settings_of_864000();
    const Screen other(settings, 1, out.file());
    other.begin();
    settings.json = "-";
    const Screen beside(settings, 0, out.file());
    beside.begin();
    beside.note("a note");
    beside.summary(summary_of_864000());
    EXPECT_EQ(out.text(), "");
    settings.json = "results.json";
    Screen(settings, 0, out.file()).note("a note");
    EXPECT_EQ(out.text(), "# a note\n");
}

TEST(Screen, SurvivesARunWithoutSteps) {
    Captured out;
    const Settings settings;
    Summary summary;
    summary.atoms = 4;
    Screen(settings, 0, out.file()).summary(summary);
    EXPECT_NE(out.text().find(
                  "1 1 0 4 0.000000 0.000000 0.000000 0.000000 0.000000 0.000000 0.000000 PERF_SUMMARY"),
              std::string::npos)
        << out.text();
}

TEST(Screen, BinsFollowTheFlagTheCellsOrTheDensity) {
    Settings settings;
    System system = lattice_of_864000();
    settings.unit_cells = {32, 1, 7};
    EXPECT_EQ(usual_bins(settings, system), (std::array<int, 3>{26, 1, 5}));
    settings.data_file = "1m.data";
    EXPECT_EQ(usual_bins(settings, system), (std::array<int, 3>{42, 42, 42}));
    settings.bins = 9;
    EXPECT_EQ(usual_bins(settings, system), (std::array<int, 3>{9, 9, 9}));
}

TEST(Json, HasTheKeysThatScriptsRead) {
    Settings settings = settings_of_864000();
    settings.precision = Precision::single_precision;
    EXPECT_EQ(
        as_json(settings, summary_of_864000()).dump(),
        R"({"atoms":864000,"steps":100,"ns_per_atom_step":46.2962962962963,"force_s":2.5,"neigh_s":0.75,)"
        R"("comm_s":0.25,"other_s":0.5,"thermo":[{"step":0,"t":1.44,"u":-6.773368,"p":-5.019671},)"
        R"({"step":100,"t":0.7310629,"u":-5.71217,"p":1.204577}],"ranks":2,"threads":16,)"
        R"("precision":"single","total_s":4.0,"device_share":0.0,)"
        R"("offpath_s":{"starting":0.125,"computing":0.5,"waiting":0.25,"device":1.0,"between":0.0625},"tunnelled_bytes":0.0,"halo":"overlapped","offloaded_bytes":0.0,"computing_s":0.0,)"
        R"("on_core_s":{"force":2.25,"neigh":0.75,"comm":0.25,"other":0.5}})");
    Summary none;
    EXPECT_TRUE(as_json(settings, none)["ns_per_atom_step"].is_null());
}

}  // namespace
}  // namespace minimd
