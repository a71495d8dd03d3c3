#include "minimd/setup/lattice.h"

#include <gtest/gtest.h>

#include <cmath>

#include "gathered.h"
#include "minimd/base/units.h"

namespace minimd {
namespace {

Settings cells(int nx, int ny, int nz) {
    Settings settings;
    settings.unit_cells = {nx, ny, nz};
    return settings;
}

System created(const Settings& settings, MPI_Comm comm, double mass = 1.0) {
    const Vec3 box = lattice_box(settings);
    const Decomposition decomposition(comm, box);
    System system = create_lattice(settings, box, decomposition, mass);
    for (const Vec3& x : system.local.x)
        EXPECT_TRUE(decomposition.contains(x));
    return system;
}

// Makes the lattice in the plainest way: sites in order, and a site's draws one by one.
std::map<std::int64_t, Atom> slowly(const Settings& settings) {
    std::map<std::int64_t, Atom> atoms;
    const auto [nx, ny, nz] = settings.unit_cells;
    const double half = std::cbrt(4.0 / settings.density) / 2;
    std::int64_t id = 0, site = 0;
    for (int k = 0; k < 2 * nz; ++k)
        for (int j = 0; j < 2 * ny; ++j)
            for (int i = 0; i < 2 * nx; ++i) {
                ++site;
                if ((i + j + k) % 2 == 1) continue;
                std::int64_t state = site;
                Vec3 v{};
                for (double& component : v) {
                    for (int draw = 0; draw < 6; ++draw)
                        state = state * 16807 % 2147483647;
                    component = static_cast<double>(state) / 2147483647;
                }
                ++id;
                atoms[id] = {id, 0, {half * i, half * j, half * k}, v};
            }
    Vec3 mean{};
    for (const auto& [_, atom] : atoms)
        for (std::size_t d = 0; d < 3; ++d)
            mean[d] += atom.v[d] / static_cast<double>(atoms.size());
    double squares = 0;
    for (auto& [_, atom] : atoms)
        for (std::size_t d = 0; d < 3; ++d) {
            atom.v[d] -= mean[d];
            squares += atom.v[d] * atom.v[d];
        }
    const double factor =
        std::sqrt(settings.temperature * (3.0 * static_cast<double>(atoms.size()) - 3) / squares);
    for (auto& [_, atom] : atoms)
        for (double& component : atom.v)
            component *= factor;
    return atoms;
}

TEST(Lattice, IsTheOneThatOneReadsOf) {
    const Settings settings = cells(5, 4, 6);
    const System system = created(settings, MPI_COMM_WORLD);
    EXPECT_EQ(system.atoms, 480);
    EXPECT_EQ(system.types, 4);
    EXPECT_EQ(system.density, 0.8442);
    EXPECT_NEAR(480 / (system.box[0] * system.box[1] * system.box[2]), 0.8442, 1e-14);
    const auto atoms = gathered(system.local, MPI_COMM_WORLD);
    const auto expected = slowly(settings);
    ASSERT_EQ(atoms.size(), expected.size());
    std::array<int, 4> of_type{};
    for (const auto& [id, atom] : atoms) {
        for (std::size_t d = 0; d < 3; ++d) {
            EXPECT_NEAR(atom.x[d], expected.at(id).x[d], 1e-13) << id;
            EXPECT_NEAR(atom.v[d], expected.at(id).v[d], 1e-12) << id;
        }
        ++of_type.at(static_cast<std::size_t>(atom.type));
    }
    for (const int atoms_of_type : of_type)
        EXPECT_NEAR(atoms_of_type, 120, 40);
}

TEST(Lattice, IsTheSameOnAnyNumberOfRanks) {
    for (const Settings& settings : {cells(6, 6, 6), cells(1, 1, 1), cells(7, 2, 3)}) {
        const System whole = created(settings, MPI_COMM_SELF);
        const System part = created(settings, MPI_COMM_WORLD);
        std::int64_t atoms = static_cast<std::int64_t>(part.local.size());
        MPI_Allreduce(MPI_IN_PLACE, &atoms, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        EXPECT_EQ(atoms, part.atoms);
        EXPECT_EQ(gathered(part.local, MPI_COMM_WORLD), gathered(whole.local, MPI_COMM_SELF));
    }
}

TEST(Lattice, HasTheTemperatureAndRestsAsAWhole) {
    for (const Units units : {Units::lj, Units::metal}) {
        Settings settings = cells(6, 5, 4);
        settings.units = units;
        settings.temperature = 600.0;
        const double mass = units == Units::lj ? 1.0 : 63.55;
        const System system = created(settings, MPI_COMM_WORLD, mass);
        double sums[4] = {};
        for (const Vec3& v : system.local.v)
            for (std::size_t d = 0; d < 3; ++d) {
                sums[d] += v[d];
                sums[3] += mass * v[d] * v[d];
            }
        MPI_Allreduce(MPI_IN_PLACE, sums, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        EXPECT_NEAR(
            sums[3] * constants_of(units).mass_velocity2 / freedom_energy(units, system.atoms) / 600.0, 1.0,
            1e-13);
        for (int d = 0; d < 3; ++d)
            EXPECT_NEAR(sums[d] / std::sqrt(sums[3]), 0.0, 1e-12);
    }
}

TEST(Lattice, MayBeCold) {
    Settings settings = cells(2, 2, 2);
    settings.temperature = 0.0;
    const System system = created(settings, MPI_COMM_WORLD);
    for (const Vec3& v : system.local.v)
        for (const double component : v)
            EXPECT_EQ(component, 0.0);
}

}  // namespace
}  // namespace minimd
