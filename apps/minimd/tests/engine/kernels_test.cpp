// The kernels of each number of lanes against a scalar loop, in one process. This also works where the
// instruction set is emulated.
#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <random>

#include <hwy/targets.h>

#include "minimd/cells/pair_list.h"
#include "minimd/dynamics/eam_forces.h"
#include "slots.h"
#include "systems.h"

namespace minimd {
namespace {

template <typename Real>
void check_lennard_jones(double tolerance) {
    const LjParameters parameters{2.5, 1.1, 0.97, 1};
    for (const int lanes : usable_lanes<Real>()) {
        const Slots<Real> slots(lanes, 150, 5.0);
        for (const bool both_sides : {true, false})
            for (const bool energy : {true, false})
                for (const int intensity : {1, 3}) {
                    SCOPED_TRACE(testing::Message() << lanes << " lanes, both sides " << both_sides
                                                    << ", energy " << energy << ", intensity " << intensity);
                    LjParameters asked = parameters;
                    asked.intensity = intensity;
                    AlignedVector<Real> f(slots.x.size(), Real{0});
                    const PairList list = slots.all_pairs(both_sides);
                    const EnergyVirial sum = kernels<Real>(lanes).lennard_jones(
                        slots.x.data(), f.data(), list.view(), asked, {energy, both_sides});
                    std::vector<double> expected(slots.x.size(), 0.0);
                    EnergyVirial expected_sum;
                    slots.for_each_pair(parameters.cutoff, [&](std::int32_t i, std::int32_t j, double r2) {
                        const double s6 = std::pow(parameters.sigma * parameters.sigma / r2, 3);
                        const double over_r = 24 * parameters.epsilon * s6 * (2 * s6 - 1) / r2;
                        slots.push(expected, i, j, over_r);
                        expected_sum += {4 * parameters.epsilon * s6 * (s6 - 1), over_r * r2};
                    });
                    expect_near(f, expected, tolerance);
                    if (!energy) continue;
                    const double weight = both_sides ? 1.0 : 0.5;
                    EXPECT_NEAR(weight * sum.energy, expected_sum.energy,
                                tolerance * std::abs(expected_sum.energy));
                    EXPECT_NEAR(weight * sum.virial, expected_sum.virial,
                                tolerance * std::abs(expected_sum.virial));
                }
    }
}

TEST(Kernels, OfLennardJonesAreTheScalarLoop) {
    check_lennard_jones<double>(1e-12);
    check_lennard_jones<float>(1e-4);
}

// Many processors take a hundred times as long for subnormal numbers.
TEST(Kernels, OfLennardJonesMakeNoSubnormalNumbersOfFillers) {
    for (const int lanes : usable_lanes<float>()) {
        const Slots<float> slots(lanes, 150, 5.0);
        for (const bool both_sides : {true, false})
            for (const bool energy : {true, false}) {
                SCOPED_TRACE(testing::Message()
                             << lanes << " lanes, both sides " << both_sides << ", energy " << energy);
                AlignedVector<float> f(slots.x.size(), 0.0F);
                const PairList list = slots.all_pairs(both_sides);
                std::feclearexcept(FE_ALL_EXCEPT);
                kernels<float>(lanes).lennard_jones(slots.x.data(), f.data(), list.view(), {2.5, 1.0, 1.0, 1},
                                                    {energy, both_sides});
                EXPECT_EQ(std::fetestexcept(FE_UNDERFLOW), 0);
            }
    }
}

template <typename Real>
void check_eam(double tolerance) {
    const EamTables tables = smooth_tables();
    for (const int lanes : usable_lanes<Real>()) {
        const Slots<Real> slots(lanes, 150, 5.0);
        const EamForces<Real> forces(Settings{}, kernels<Real>(lanes), tables);
        const EamKernels<Real> kernel = eam_kernels<Real>(lanes);
        if (kernel.density == nullptr) continue;  // the instruction set in use has no such kernel
        AlignedVector<Real> derivative(static_cast<std::size_t>(slots.count), Real{0});
        for (const std::int32_t slot : slots.atoms)
            derivative[static_cast<std::size_t>(slot)] = static_cast<Real>(0.3 + 0.01 * slot);
        std::vector<double> density(derivative.size(), 0.0), f(slots.x.size(), 0.0);
        double energy = 0.0, virial = 0.0;
        slots.for_each_pair(tables.cutoff, [&](std::int32_t i, std::int32_t j, double r2) {
            const double r = std::sqrt(r2);
            const Spline::Point rho = tables.rhor.at(r), z2 = tables.z2r.at(r);
            const auto of = [&](std::int32_t slot) {
                return static_cast<double>(derivative[static_cast<std::size_t>(slot)]);
            };
            density[static_cast<std::size_t>(i)] += rho.value;
            density[static_cast<std::size_t>(j)] += rho.value;
            energy += z2.value / r;
            const double over_r = -((of(i) + of(j)) * rho.slope + z2.slope / r - z2.value / r2) / r;
            slots.push(f, i, j, over_r);
            virial += over_r * r2;
        });
        for (const bool both_sides : {true, false})
            for (const bool sums : {true, false}) {
                SCOPED_TRACE(testing::Message()
                             << lanes << " lanes, both sides " << both_sides << ", sums " << sums);
                const PairList list = slots.all_pairs(both_sides);
                const ForceFlags flags{sums, both_sides};
                AlignedVector<Real> found_density(density.size(), Real{0}), found_f(f.size(), Real{0});
                EamPairStore<Real> store;
                EamPairs<Real>& pairs = store.room_for(list.view(), lanes);
                const double found_energy = kernel.density(slots.x.data(), found_density.data(), list.view(),
                                                           forces.table(), flags, pairs);
                const double found_virial =
                    kernel.force(slots.x.data(), derivative.data(), found_f.data(), pairs, flags);
                expect_near(found_density, density, tolerance);
                expect_near(found_f, f, tolerance);
                if (!sums) continue;
                EXPECT_NEAR((both_sides ? 1.0 : 0.5) * found_energy, energy, tolerance * std::abs(energy));
                EXPECT_NEAR((both_sides ? 1.0 : 0.5) * found_virial, virial, tolerance * std::abs(virial));
            }
    }
}

TEST(Kernels, OfEamAreTheScalarLoop) {
    check_eam<double>(1e-12);
    check_eam<float>(1e-4);
}

// Also tests the lesser instruction sets that this processor supports.
TEST(Kernels, OfEamAreTheScalarLoopOnEveryInstructionSet) {
    const std::int64_t all = hwy::SupportedTargets();
    int sets = 0;
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
        SCOPED_TRACE(hwy::TargetName(target));
        hwy::GetChosenTarget().Update(target);
        const bool vectors = eam_kernels<double>(2).density != nullptr;
        if (vectors) {
            check_eam<double>(1e-12);
            check_eam<float>(1e-4);
            ++sets;
        }
    }
    hwy::GetChosenTarget().Update(all);
    EXPECT_GE(sets, 1);
}

TEST(Kernels, AreThereForFourLanesAtLeastInSinglePrecision) {
    EXPECT_FALSE(usable_lanes<double>().empty());
    EXPECT_FALSE(usable_lanes<float>().empty());
    EXPECT_THROW(kernels<double>(3), std::invalid_argument);
    EXPECT_THROW(kernels<float>(2), std::invalid_argument);
}

// `origin` is the box's lower corner, in each dimension.
template <typename Real>
void check_search(double origin) {
    constexpr double range = 1.7;
    for (const int lanes : usable_lanes<Real>()) {
        SCOPED_TRACE(lanes);
        const Slots<Real> slots(lanes, 400, 9.0);
        std::vector<Zone<Real>> zones(1);
        std::vector<Real> x, y, z;
        for (const std::int32_t slot : slots.atoms) {
            const Real* at = slots.x.data() + slots.layout.address(slot);
            x.push_back(at[0] + static_cast<Real>(origin));
            y.push_back(at[lanes] + static_cast<Real>(origin));
            z.push_back(at[2 * lanes] + static_cast<Real>(origin));
        }
        std::vector<std::int32_t> order;
        zones[0].columns.set_up({origin, origin}, {origin + 9.0, origin + 9.0}, 1.6);
        Particles<Real> p;
        p.layout = slots.layout;
        p.slots = p.local_slots = zones[0].end_slot = zones[0].columns.sort(
            p.layout, 0, std::span<const Real>(x), std::span<const Real>(y), std::span<const Real>(z), order);
        p.x.resize(p.reals(p.slots));
        for (std::int32_t slot = 0; slot < p.slots; ++slot) {
            const std::int32_t atom = order[static_cast<std::size_t>(slot)];
            const std::array<const std::vector<Real>*, 3> from{&x, &y, &z};
            for (std::size_t d = 0; d < 3; ++d)
                p.position(slot)[d * static_cast<std::size_t>(lanes)] =
                    atom < 0 ? static_cast<Real>(filler_position(slot, static_cast<int>(d)))
                             : (*from[d])[static_cast<std::size_t>(atom)];
        }
        PairSearch<Real> search(kernels<Real>(lanes));
        search.enclose_own(p);
        PairLists lists;
        search.find_interior(p, zones[0], {PairSearch<Real>::Shell::eighth, range}, lists.interior);
        std::vector<std::pair<std::int32_t, std::int32_t>> found, expected;
        const auto near = [&](std::int32_t i, std::int32_t j) {
            const Real *a = p.position(i), *b = p.position(j);
            double r2 = 0;
            for (int d = 0; d < 3; ++d) {
                const double delta = static_cast<double>(a[d * lanes]) - static_cast<double>(b[d * lanes]);
                r2 += delta * delta;
            }
            return r2 < range * range * (1 - 1e-6);
        };
        for (const PairRow& row : lists.interior.rows)
            for (std::int32_t b = row.begin; b < row.end; ++b)
                for (std::int32_t i = row.cluster * cluster_size; i < (row.cluster + 1) * cluster_size; ++i)
                    for (std::int32_t j = lists.interior.blocks[static_cast<std::size_t>(b)] * lanes, k = 0;
                         k < lanes; ++j, ++k)
                        if ((b >= row.begin + row.masked || j > i) && near(i, j))
                            found.emplace_back(std::min(i, j), std::max(i, j));
        for (std::int32_t i = 0; i < p.slots; ++i)
            for (std::int32_t j = i + 1; j < p.slots; ++j)
                if (near(i, j)) expected.emplace_back(i, j);
        std::sort(found.begin(), found.end());
        EXPECT_TRUE(found == expected) << found.size() << " pairs of " << expected.size();
        EXPECT_GT(expected.size(), 400U);
    }
}

TEST(Kernels, OfTheSearchFindEveryPairOnce) {
    check_search<double>(0.0);
    check_search<float>(0.0);
    // Here single precision, in which the search compares double positions, resolves only 1/128.
    check_search<double>(1e5);
}

}  // namespace
}  // namespace minimd
