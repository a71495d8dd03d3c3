// Forces, energy and virial of the engine against sums over all pairs and images.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "engine.h"
#include "minimd/dynamics/eam_forces.h"
#include "support/mpi_program.h"
#include "systems.h"

namespace minimd {
namespace {

struct ForceCase {
    const char* name;
    Vec3 box;
};

const ForceCase cases[] = {
    {"ordinary", {8.1, 7.3, 6.7}},
    {"several images of an atom", {2.3, 4.1, 3.2}},
    {"subdomains thinner than the range", {13.0, 2.6, 2.7}},
};

template <typename Real>
void expect_forces(const Engine<Real>& engine, const ExpectedForces& expected, double tolerance) {
    double largest = 0;
    for (const Vec3& f : expected.f)
        largest = std::max({largest, std::abs(f[0]), std::abs(f[1]), std::abs(f[2])});
    const auto atoms = engine.everywhere(engine.particles.f);
    ASSERT_EQ(atoms.size(), expected.f.size());
    Vec3 total{};
    for (const auto& [id, atom] : atoms)
        for (std::size_t d = 0; d < 3; ++d) {
            ASSERT_NEAR(atom.v[d], expected.f[static_cast<std::size_t>(id - 1)][d], tolerance * largest)
                << "atom " << id;
            total[d] += atom.v[d];
        }
    for (std::size_t d = 0; d < 3; ++d)
        EXPECT_NEAR(total[d], 0.0, tolerance * largest * static_cast<double>(atoms.size()));
}

template <typename Real>
void expect_sums(const Engine<Real>& engine, const EnergyVirial& sum, const ExpectedForces& expected,
                 double tolerance) {
    const EnergyVirial all = engine.over_ranks(sum);
    EXPECT_NEAR(all.energy, expected.sum.energy, tolerance * std::abs(expected.sum.energy));
    EXPECT_NEAR(all.virial, expected.sum.virial, tolerance * std::abs(expected.sum.virial));
}

// Checks the forces that `make(engine)` gives, for all ways to list pairs.
template <typename Real, typename Make>
void check(const Settings& asked, const Vec3& box, const AtomList& atoms, const ExpectedForces& expected,
           double tolerance, Make&& make) {
    struct Way {
        int half_neigh;
        bool ghost_newton;
    };
    for (const Way& way : {Way{1, true}, Way{1, false}, Way{0, false}})
        for (const int lanes : usable_lanes<Real>())
            for (const int threads : thread_counts()) {
                SCOPED_TRACE(testing::Message()
                             << "half " << way.half_neigh << ", ghost newton " << way.ghost_newton << ", "
                             << lanes << " lanes, " << threads << " threads");
                Settings settings = asked;
                settings.half_neigh = way.half_neigh;
                settings.ghost_newton = way.ghost_newton;
                settings.lanes = lanes;
                settings.threads = threads;
                Engine<Real> engine(settings, box, atoms);
                const std::unique_ptr<Forces<Real>> forces = make(engine);
                engine.rebuild();
                const auto compute = [&](bool fresh, bool energy) {
                    return forces->compute(engine.particles, engine.neighborhood, fresh, energy,
                                           engine.times);
                };
                expect_sums(engine, compute(true, true), expected, tolerance);
                expect_forces(engine, expected, tolerance);
                // Compute once more, with ghosts that have to be updated.
                Particles<Real>& p = engine.particles;
                for (std::size_t i = p.reals(p.local_slots); i < p.reals(p.slots); ++i)
                    p.x[i] += Real(0.02);
                compute(false, false);
                expect_forces(engine, expected, tolerance);
                if (testing::Test::HasFatalFailure()) return;
            }
}

template <typename Real>
void check_lennard_jones(double tolerance) {
    Settings settings;
    settings.epsilon = 0.9;
    settings.sigma = 1.02;
    for (const ForceCase& each : cases) {
        SCOPED_TRACE(each.name);
        const AtomList atoms = jittered(each.box, 1.05, 0.12);
        check<Real>(settings, each.box, atoms, expected_lennard_jones(atoms, each.box, {2.5, 0.9, 1.02, 1}),
                    tolerance, [](const Engine<Real>& engine) {
                        return std::make_unique<LennardJonesForces<Real>>(engine.settings, engine.kernel);
                    });
    }
}

TEST(Forces, OfLennardJonesAreThoseOfAllPairs) {
    check_lennard_jones<double>(1e-11);
}
TEST(Forces, OfLennardJonesInSinglePrecision) {
    check_lennard_jones<float>(2e-4);
}

template <typename Real>
void check_eam(double tolerance) {
    const EamTables tables = smooth_tables();
    for (const ForceCase& each : cases) {
        SCOPED_TRACE(each.name);
        const AtomList atoms = jittered(each.box, 1.05, 0.2);
        check<Real>(Settings{}, each.box, atoms, expected_eam(atoms, each.box, tables), tolerance,
                    [&](const Engine<Real>& engine) {
                        return std::make_unique<EamForces<Real>>(engine.settings, engine.kernel, tables);
                    });
    }
}

TEST(Forces, OfEamAreThoseOfAllPairs) {
    check_eam<double>(1e-11);
}
TEST(Forces, OfEamInSinglePrecision) {
    check_eam<float>(2e-4);
}

TEST(Forces, OfEamWantListsThatReachTheirCutoff) {
    EamTables tables = smooth_tables();
    Settings settings;
    settings.cutoff = 1.0;
    settings.skin = 1.4;
    EXPECT_THROW(EamForces<double>(settings, kernels<double>(), tables), mpi_support::UsageError);
    tables.cutoff = 2.4;
    EXPECT_NO_THROW(EamForces<double>(settings, kernels<double>(), tables));
}

}  // namespace
}  // namespace minimd
