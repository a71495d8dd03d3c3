// Atoms change ranks and slots, and their data come along. The error for an atom that cannot be followed
// names it.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "engine.h"
#include "minimd/dynamics/simulation.h"
#include "systems.h"

namespace minimd {
namespace {

// Returns the text of the SimulationError that `call` throws, or an empty string if it throws none.
template <typename Call>
std::string simulation_error(Call&& call) {
    try {
        call();
    } catch (const SimulationError& error) {
        return error.what();
    }
    return "";
}

int ranks() {
    int n = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    return n;
}

Vec3 mark(std::int64_t id) {
    const auto n = static_cast<double>(id);
    return {n, 2 * n, -n};
}

template <typename Real>
void check_that_everything_follows() {
    const Vec3 box{11.0, 9.0, 10.0};
    const AtomList atoms = jittered(box, 1.1, 0.3);
    for (const int lanes : usable_lanes<Real>()) {
        SCOPED_TRACE(lanes);
        Settings settings;
        settings.lanes = lanes;
        Engine<Real> engine(settings, box, atoms);
        engine.rebuild();
        std::vector<Vec3> where = atoms.x;
        for (int round = 1; round <= 4; ++round) {
            // The atoms move far enough for some to pass an edge, a corner and the box's side.
            Particles<Real>& p = engine.particles;
            AlignedVector<Real> old_marks(p.reals(p.local_slots), Real{-7});
            engine.for_each_atom([&](std::int32_t slot, std::int64_t id) {
                Vec3 x = engine.get(p.x, slot);
                const Vec3 v = engine.get(p.v, slot);
                for (std::size_t d = 0; d < 3; ++d)
                    x[d] += 0.9 * v[d] * (round % 2 == 1 ? 1 : -0.7);
                engine.set(p.x, slot, x);
                engine.set(old_marks, slot, mark(id));
            });
            for (std::size_t i = 0; i < atoms.size(); ++i)
                for (std::size_t d = 0; d < 3; ++d) {
                    where[i][d] += 0.9 * atoms.v[i][d] * (round % 2 == 1 ? 1 : -0.7);
                    where[i][d] -= std::floor(where[i][d] / box[d]) * box[d];
                }
            engine.rebuild(round);
            AlignedVector<Real> marks(p.reals(p.local_slots));
            engine.neighborhood.migration().follow(old_marks.data(), marks.data());
            std::int64_t count = p.atoms;
            MPI_Allreduce(MPI_IN_PLACE, &count, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
            EXPECT_EQ(count, static_cast<std::int64_t>(atoms.size()));
            std::int32_t here = 0;
            engine.for_each_atom([&](std::int32_t slot, std::int64_t id) {
                ++here;
                const auto i = static_cast<std::size_t>(id - 1);
                EXPECT_EQ(engine.get(marks, slot), mark(id));
                EXPECT_TRUE(ranks() == 1 || engine.decomposition.contains(engine.get(p.x, slot)));
                for (std::size_t d = 0; d < 3; ++d) {
                    const double off = engine.get(p.x, slot)[d] - where[i][d];
                    EXPECT_NEAR(off - box[d] * std::round(off / box[d]), 0.0, 2e-5) << "atom " << id;
                    EXPECT_EQ(engine.get(p.v, slot)[d],
                              static_cast<double>(static_cast<Real>(atoms.v[i][d])));
                }
            });
            EXPECT_EQ(here, p.atoms);
            for (std::int32_t slot = 0; slot < p.local_slots; ++slot)
                if (p.id[static_cast<std::size_t>(slot)] == 0) {
                    EXPECT_EQ(engine.get(marks, slot), Vec3{}) << "a filler";
                    EXPECT_EQ(engine.get(p.v, slot), Vec3{});
                }
            EXPECT_EQ(engine.everywhere(p.v).size(), atoms.size());
        }
    }
}

TEST(Migration, TakesVelocitiesIdsAndWhatFollowsAlong) {
    check_that_everything_follows<double>();
    check_that_everything_follows<float>();
}

TEST(Migration, NamesStepAndAtomOfWhatIsNotANumber) {
    const Vec3 box{8.0, 8.0, 8.0};
    Engine<double> engine(Settings{}, box, jittered(box, 1.0, 0.1));
    engine.rebuild();
    std::int64_t spoiled = 0;
    engine.for_each_atom([&](std::int32_t slot, std::int64_t id) {
        if (spoiled != 0) return;
        spoiled = id;
        engine.set(engine.particles.x, slot, {1.0, std::numeric_limits<double>::quiet_NaN(), 1.0});
    });
    ASSERT_NE(spoiled, 0) << "every rank should have atoms";
    const std::string text = simulation_error([&] { engine.rebuild(17); });
    EXPECT_NE(text.find("step 17"), text.npos) << text;
    EXPECT_NE(text.find("atom " + std::to_string(spoiled) + " "), text.npos) << text;
}

TEST(Migration, NamesAnAtomThatPassedASubdomain) {
    // The subdomains form a row. All ranks have to see the error, or some would wait for others.
    const Vec3 box{6.0 * ranks(), 5.0, 5.0};
    Engine<double> engine(Settings{}, box, jittered(box, 1.0, 0.1));
    engine.rebuild();
    ASSERT_TRUE(ranks() < 4 || engine.decomposition.grid()[0] == ranks());
    std::int64_t far = 0;
    engine.for_each_atom([&](std::int32_t slot, std::int64_t id) {
        if (far != 0) return;
        far = id;
        Vec3 x = engine.get(engine.particles.x, slot);
        x[0] += ranks() < 4 ? 2.5 * box[0] : 12.5;
        engine.set(engine.particles.x, slot, x);
    });
    const std::string text = simulation_error([&] { engine.rebuild(40); });
    EXPECT_NE(text.find("step 40"), text.npos) << text;
    EXPECT_NE(text.find("atom " + std::to_string(far) + " "), text.npos) << text;
    if (ranks() >= 4) {
        EXPECT_NE(text.find("smaller re-neighbouring interval"), text.npos) << text;
    }
}

System system_of(const Vec3& box, const AtomList& atoms, const Decomposition& decomposition) {
    System system;
    system.box = box;
    system.atoms = static_cast<std::int64_t>(atoms.size());
    system.density = static_cast<double>(atoms.size()) / (box[0] * box[1] * box[2]);
    for (std::size_t i = 0; i < atoms.size(); ++i)
        if (decomposition.contains(atoms.x[i])) {
            system.local.id.push_back(atoms.id[i]);
            system.local.type.push_back(0);
            system.local.x.push_back(atoms.x[i]);
            system.local.v.push_back(atoms.v[i]);
        }
    return system;
}

TEST(Simulation, SaysWhenAtomsAreLost) {
    const Vec3 box{8.0, 8.0, 8.0};
    const Decomposition decomposition(MPI_COMM_WORLD, box);
    Settings settings;
    settings.steps = 0;
    System system = system_of(box, jittered(box, 1.0, 0.1), decomposition);
    ++system.atoms;
    Simulation<double> simulation(settings, decomposition, system);
    const std::string text = simulation_error([&] { simulation.run(); });
    EXPECT_NE(text.find("step 0: 512 atoms of 513 are left"), text.npos) << text;
}

TEST(Simulation, NamesAnAtomWhoseForceIsNotANumber) {
    if (ranks() > 1) GTEST_SKIP() << "only one rank would see the error and end";
    const Vec3 box{8.0, 8.0, 8.0};
    const Decomposition decomposition(MPI_COMM_WORLD, box);
    AtomList atoms = jittered(box, 1.0, 0.1);
    atoms.x[11] = atoms.x[10];
    Settings settings;
    settings.steps = 1;
    const System system = system_of(box, atoms, decomposition);
    Simulation<double> simulation(settings, decomposition, system);
    const std::string text = simulation_error([&] { simulation.run(); });
    EXPECT_NE(text.find("step 0"), text.npos) << text;
    EXPECT_TRUE(text.find("atom 11 ") != text.npos || text.find("atom 12 ") != text.npos) << text;
}

}  // namespace
}  // namespace minimd
