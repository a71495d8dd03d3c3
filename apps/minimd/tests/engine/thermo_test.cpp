// Whole runs: temperature, energy and pressure as miniMD prints them, however the work is divided.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>

#include "gathered.h"
#include "minimd/base/units.h"
#include "minimd/dynamics/simulation.h"
#include "minimd/setup/eam_file.h"
#include "minimd/setup/lattice.h"
#include "systems.h"

namespace minimd {
namespace {

struct Outcome {
    std::vector<ThermoRow> rows;
    std::map<std::int64_t, Atom> atoms;
};

// `tables` is for the embedded-atom method.
template <typename Real>
Outcome run(const Settings& settings, const EamTables* tables = nullptr, MPI_Comm comm = MPI_COMM_WORLD) {
    const Vec3 box = lattice_box(settings);
    const Decomposition decomposition(comm, box);
    Simulation<Real> simulation(
        settings, decomposition,
        create_lattice(settings, box, decomposition, tables != nullptr ? tables->mass : 1.0), tables);
    Outcome result;
    result.rows = simulation.run().thermo;
    result.atoms = gathered(simulation.atoms(), comm);
    return result;
}

Settings lennard_jones(int cells) {
    Settings settings;
    settings.unit_cells = {cells, cells, cells};
    settings.reneighbor_every = 5;
    return settings;
}

Settings copper(int cells) {
    Settings settings;
    settings.units = Units::metal;
    settings.potential = Potential::eam;
    settings.unit_cells = {cells, cells, cells};
    settings.timestep = 0.001;
    settings.temperature = 600;
    settings.density = 0.07041125;
    settings.cutoff = 4.95;
    settings.skin = 1.0;
    settings.reneighbor_every = 5;
    return settings;
}

// Returns nothing if the file is not installed. Collective.
std::optional<EamTables> copper_tables() {
    for (const std::string& place : eam_places("Cu_u6.eam"))
        if (std::filesystem::is_regular_file(place)) return read_eam(place, MPI_COMM_WORLD);
    return std::nullopt;
}

// Compares with values printed with 7 digits.
void expect_printed(const ThermoRow& row, std::int64_t step, double t, double u, double p) {
    EXPECT_EQ(row.step, step);
    const auto unit = [](double value) {
        return value == 0 ? 1e-6 : std::pow(10.0, std::floor(std::log10(std::abs(value))) - 6);
    };
    EXPECT_NEAR(row.temperature, t, 0.51 * unit(t)) << "temperature at step " << step;
    EXPECT_NEAR(row.energy, u, 0.51 * unit(u)) << "energy at step " << step;
    EXPECT_NEAR(row.pressure, p, std::max(0.51 * unit(p), 1e-9)) << "pressure at step " << step;
}

void expect_same(const std::vector<ThermoRow>& a, const std::vector<ThermoRow>& b, double tolerance) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
        EXPECT_EQ(a[i].step, b[i].step);
        EXPECT_NEAR(a[i].temperature, b[i].temperature, tolerance * std::abs(a[i].temperature));
        EXPECT_NEAR(a[i].energy, b[i].energy, tolerance * std::abs(a[i].energy));
        EXPECT_NEAR(a[i].pressure, b[i].pressure, tolerance * std::abs(a[0].pressure));
    }
}

// Values of Mantevo's miniMD 1.2 in double precision. It re-neighbours every 5 steps, so that it misses no
// pair.
TEST(Thermo, IsThatOfMiniMdFor4000Atoms) {
    Settings settings = lennard_jones(10);
    settings.thermo_every = 20;
    const auto rows = run<double>(settings).rows;
    ASSERT_EQ(rows.size(), 6U);
    expect_printed(rows[0], 0, 1.440000e+00, -6.773368e+00, -5.019973e+00);
    expect_printed(rows[1], 20, 8.466618e-01, -5.890607e+00, -7.583890e-05);
    expect_printed(rows[2], 40, 6.454631e-01, -5.586855e+00, 1.701886e+00);
    expect_printed(rows[3], 60, 7.183388e-01, -5.695574e+00, 7.783150e-01);
    expect_printed(rows[4], 80, 7.050947e-01, -5.676881e+00, 6.565386e-01);
    expect_printed(rows[5], 100, 7.208680e-01, -5.701256e+00, 5.237275e-01);
}

// What is the same on any number of ranks (below) is compared with miniMD's values on few.
bool one_rank_or_odd_grid() {
    int ranks = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    return ranks == 1 || ranks == 5;
}

TEST(Thermo, IsThatOfMiniMdFor32000Atoms) {
    if (!one_rank_or_odd_grid()) GTEST_SKIP() << "one rank and an odd grid are enough";
    const auto rows = run<double>(lennard_jones(20)).rows;
    ASSERT_EQ(rows.size(), 2U);
    expect_printed(rows[0], 0, 1.440000e+00, -6.773368e+00, -5.019707e+00);
    expect_printed(rows[1], 100, 7.522807e-01, -5.750128e+00, 2.187540e-01);
}

// Values of the same program, with Cu_u6.eam.
TEST(Thermo, IsThatOfMiniMdForCopper) {
    if (!one_rank_or_odd_grid()) GTEST_SKIP() << "one rank and an odd grid are enough";
    const auto tables = copper_tables();
    if (!tables) GTEST_SKIP() << "no Cu_u6.eam: install lammps-data";
    Settings settings = copper(10);
    settings.thermo_every = 20;
    const auto rows = run<double>(settings, &*tables).rows;
    ASSERT_EQ(rows.size(), 6U);
    expect_printed(rows[0], 0, 6.000000e+02, -3.554527e+06, -1.641983e+05);
    expect_printed(rows[1], 20, 5.118010e+02, -3.542574e+06, -1.583324e+05);
    expect_printed(rows[2], 40, 3.149638e+02, -3.515898e+06, -1.451053e+05);
    expect_printed(rows[3], 60, 1.755936e+02, -3.497011e+06, -1.358712e+05);
    expect_printed(rows[4], 80, 1.662618e+02, -3.495749e+06, -1.348536e+05);
    expect_printed(rows[5], 100, 2.006154e+02, -3.500404e+06, -1.380894e+05);
}

template <typename Real>
void check_that_ways_agree(Settings settings, double tolerance, const EamTables* tables = nullptr) {
    settings.steps = 20;
    settings.thermo_every = 10;
    const auto usual = run<Real>(settings, tables).rows;
    struct Way {
        int half_neigh;
        bool ghost_newton;
        int lanes, threads;
    };
    const bool twice = sizeof(Real) == 8;
    for (const Way& way :
         {Way{1, true, twice ? 2 : 4, 1}, Way{1, true, twice ? 8 : 16, 2}, Way{1, false, 0, 1},
          Way{1, false, 4, 2}, Way{0, true, 0, 1}, Way{0, false, 8, 2}, Way{-1, true, 0, 1}}) {
        SCOPED_TRACE(testing::Message() << "half " << way.half_neigh << ", ghost newton " << way.ghost_newton
                                        << ", " << way.lanes << " lanes, " << way.threads << " threads");
        Settings other = settings;
        other.half_neigh = way.half_neigh;
        other.ghost_newton = way.ghost_newton;
        other.threads = std::min(way.threads, thread_counts().back());
        other.lanes = way.lanes;
        try {
            kernels<Real>(way.lanes);
        } catch (const std::invalid_argument&) {
            other.lanes = 0;  // this processor has no other kernels
        }
        expect_same(usual, run<Real>(other, tables).rows, tolerance);
    }
}

TEST(Thermo, IsTheSameInAllWaysToListPairs) {
    check_that_ways_agree<double>(lennard_jones(6), 1e-10);
    check_that_ways_agree<float>(lennard_jones(6), 1e-4);
}

TEST(Thermo, OfCopperIsTheSameInAllWaysToListPairs) {
    const auto tables = copper_tables();
    if (!tables) GTEST_SKIP() << "no Cu_u6.eam: install lammps-data";
    check_that_ways_agree<double>(copper(5), 1e-10, &*tables);
    check_that_ways_agree<float>(copper(5), 1e-4, &*tables);
}

// Any number of ranks gets the result of one rank.
TEST(Thermo, IsTheSameOnAnyNumberOfRanks) {
    Settings settings = lennard_jones(6);
    settings.steps = settings.thermo_every = 20;
    expect_same(run<double>(settings, nullptr, MPI_COMM_SELF).rows, run<double>(settings).rows, 1e-10);
    const auto tables = copper_tables();
    if (!tables) GTEST_SKIP() << "no Cu_u6.eam: install lammps-data; Lennard-Jones was tried";
    settings = copper(5);
    settings.steps = settings.thermo_every = 20;
    expect_same(run<double>(settings, &*tables, MPI_COMM_SELF).rows, run<double>(settings, &*tables).rows,
                1e-10);
}

double total_energy(const Settings& settings, const ThermoRow& row, std::size_t atoms) {
    return row.energy + 0.5 * row.temperature *
                            freedom_energy(settings.units, static_cast<std::int64_t>(atoms)) /
                            static_cast<double>(atoms);
}

TEST(Dynamics, ConserveEnergyAndMomentum) {
    Settings settings = lennard_jones(6);
    settings.cutoff = 4.0;
    settings.timestep = 0.002;
    settings.steps = 100;
    settings.thermo_every = 20;
    for (const bool ghost_newton : {true, false}) {
        settings.ghost_newton = ghost_newton;
        const Outcome result = run<double>(settings);
        ASSERT_EQ(result.atoms.size(), 864U);
        const double first = total_energy(settings, result.rows.front(), result.atoms.size());
        // What remains is the effect of the step at the cutoff.
        for (const ThermoRow& row : result.rows)
            EXPECT_NEAR(total_energy(settings, row, result.atoms.size()), first, 3e-3);
        Vec3 momentum{};
        for (const auto& [_, atom] : result.atoms)
            for (std::size_t d = 0; d < 3; ++d)
                momentum[d] += atom.v[d];
        for (const double component : momentum)
            EXPECT_NEAR(component, 0.0, 1e-9);
    }
}

TEST(Dynamics, OfCopperConserveEnergyAndMomentum) {
    const auto tables = copper_tables();
    if (!tables) GTEST_SKIP() << "no Cu_u6.eam: install lammps-data";
    Settings settings = copper(5);
    settings.steps = 100;
    settings.thermo_every = 20;
    const ThermoScales scales(settings.units, 500, 1.0);
    const Outcome result = run<double>(settings, &*tables);
    ASSERT_EQ(result.atoms.size(), 500U);
    const auto total = [&](const ThermoRow& row) {  // eV an atom
        return row.energy / scales.energy + 0.5 * row.temperature * freedom_energy(settings.units, 500) / 500;
    };
    EXPECT_GT(std::abs(result.rows.back().temperature - result.rows.front().temperature), 100);
    for (const ThermoRow& row : result.rows)
        EXPECT_NEAR(total(row), total(result.rows.front()), 2e-4);
    for (std::size_t d = 0; d < 3; ++d) {
        double momentum = 0;
        for (const auto& [_, atom] : result.atoms)
            momentum += atom.v[d];
        EXPECT_NEAR(momentum, 0.0, 1e-8);
    }
}

}  // namespace
}  // namespace minimd
