// Whole runs: temperature, energy and pressure as miniMD prints them, in whatever way the work is divided.
#include <gtest/gtest.h>

#include <cmath>

#include "gathered.h"
#include "minimd/dynamics/simulation.h"
#include "minimd/setup/lattice.h"
#include "minimd/setup/units.h"

namespace minimd {
namespace {

struct Outcome {
    std::vector<ThermoRow> rows;
    std::map<std::int64_t, Atom> atoms;
};

template <typename Real>
Outcome run(const Settings& settings) {
    const Vec3 box = lattice_box(settings);
    const Decomposition decomposition(MPI_COMM_WORLD, box);
    Simulation<Real> simulation(settings, decomposition, create_lattice(settings, box, decomposition));
    Outcome result;
    result.rows = simulation.run().thermo;
    result.atoms = gathered(simulation.atoms(), MPI_COMM_WORLD);
    return result;
}

Settings lennard_jones(int cells) {
    Settings settings;
    settings.unit_cells = {cells, cells, cells};
    settings.reneighbor_every = 5;
    return settings;
}

// As printed with 7 digits.
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

// Mantevo's miniMD 1.2 in double precision, re-neighbouring every 5 steps, with which it misses no pair.
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

TEST(Thermo, IsThatOfMiniMdFor32000Atoms) {
    int ranks = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 1 && ranks != 5) GTEST_SKIP() << "one rank and an odd grid are enough";
    const auto rows = run<double>(lennard_jones(20)).rows;
    ASSERT_EQ(rows.size(), 2U);
    expect_printed(rows[0], 0, 1.440000e+00, -6.773368e+00, -5.019707e+00);
    expect_printed(rows[1], 100, 7.522807e-01, -5.750128e+00, 2.187540e-01);
}

template <typename Real>
void check_that_ways_agree(Settings settings, double tolerance) {
    settings.steps = 20;
    settings.thermo_every = 10;
    const auto usual = run<Real>(settings).rows;
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
        other.threads = way.threads;
        other.lanes = way.lanes;
        try {
            kernels<Real>(way.lanes);
        } catch (const std::invalid_argument&) {
            other.lanes = 0;  // this processor has none
        }
        expect_same(usual, run<Real>(other).rows, tolerance);
    }
}

TEST(Thermo, IsTheSameInAllWaysToListPairs) {
    check_that_ways_agree<double>(lennard_jones(6), 1e-10);
    check_that_ways_agree<float>(lennard_jones(6), 1e-4);
}

// What one rank gets, on any number: values of step 20 of `cells`^3 unit cells.
TEST(Thermo, IsTheSameOnAnyNumberOfRanks) {
    Settings settings = lennard_jones(6);
    settings.steps = 20;
    settings.thermo_every = 20;
    const auto rows = run<double>(settings).rows;
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const Vec3 box = lattice_box(settings);
    const Decomposition alone(MPI_COMM_SELF, box);
    Simulation<double> simulation(settings, alone, create_lattice(settings, box, alone));
    expect_same(simulation.run().thermo, rows, 1e-10);
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
        // What is left is the step at the cutoff.
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

}  // namespace
}  // namespace minimd
