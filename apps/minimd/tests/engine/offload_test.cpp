// Ranks that lose their devices one after the other, at any step, get the same table as hosts alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "minimd/dynamics/eam_forces.h"
#include "minimd/dynamics/simulation.h"
#include "minimd/offpath/offload.h"
#include "systems.h"

namespace minimd {
namespace {

// Computes at once what a device of the runtime would, until it is lost in one of its calls. So the loss may
// come before or after its forces on ghosts have been taken.
class Fragile final : public Device<double> {
  public:
    Fragile(const Settings& settings, int calls)
        : parameters_{settings.cutoff, settings.epsilon, settings.sigma, 1}, left_(calls) {}

    GhostMover ghost_mover() const override { return GhostMover::hosts; }
    bool lists_ahead() const override { return true; }
    void set_lists(const Particles<double>&, Neighborhood<double>& neighborhood) override {
        next_lists_ = neighborhood.lists();
        both_sides_ = {neighborhood.both_sides(false), neighborhood.both_sides(true)};
    }
    void start(const Particles<double>& particles, const Share& share) override {
        if (!survives()) return;
        lists_ = next_lists_;
        energy_ = share.energy;
        f_.assign(particles.reals(particles.slots), 0.0);
        own_ = particles.reals(particles.local_slots);
        x_.assign(particles.x.begin(), particles.x.begin() + static_cast<std::ptrdiff_t>(own_));
        x_.resize(f_.size());
        sum_ = {};
        for (std::size_t t = 0; t < lists_.size(); ++t) {
            const PairList& list = lists_[t].interior;
            const auto first = static_cast<std::size_t>(share.first_rows[t]);
            compute(list.view(first, list.rows.size() - first), false);
        }
    }
    void take_ghosts(const Particles<double>& particles) override {
        if (!survives()) return;
        std::copy(particles.x.begin() + static_cast<std::ptrdiff_t>(own_),
                  particles.x.begin() + static_cast<std::ptrdiff_t>(x_.size()),
                  x_.begin() + static_cast<std::ptrdiff_t>(own_));
        for (const PairLists& lists : lists_)
            compute(lists.boundary.view(), true);
        asked_ = 0;
    }
    // Now and then the forces are not ready until a caller waits.
    const double* ghost_forces(bool wait) override {
        if (!survives() || (!wait && (++asked_ + rounds_) % 3 != 0)) return nullptr;
        return f_.data();
    }
    std::optional<Outcome> finish() override {
        if (!survives()) return std::nullopt;
        ++rounds_;
        return Outcome{sum_, 1e-4, 1e-4, std::span<const double>(f_).first(own_)};
    }

  private:
    bool survives() { return left_ > 0 && --left_ > 0; }
    void compute(const PairRows& rows, bool boundary) {
        const bool both_sides = both_sides_[boundary ? 1 : 0];
        const EnergyVirial sum =
            kernels<double>().lennard_jones(x_.data(), f_.data(), rows, parameters_, {energy_, both_sides});
        const double weight = both_sides ? 1.0 : 0.5;
        sum_ += {weight * sum.energy, weight * sum.virial};
    }

    LjParameters parameters_;
    int left_, asked_ = 0, rounds_ = 0;
    std::vector<PairLists> lists_, next_lists_;
    AlignedVector<double> x_, f_;
    std::size_t own_ = 0;
    EnergyVirial sum_;
    std::array<bool, 2> both_sides_{true, true};
    bool energy_ = false;
};

// The same device for forces of EAM.
class FragileEam final : public Device<double> {
  public:
    FragileEam(const Settings& settings, const EamTables& tables, int calls)
        : forces_(settings, kernels<double>(), tables), left_(calls) {}

    GhostMover ghost_mover() const override { return GhostMover::hosts; }
    bool takes_undivided() const override { return true; }
    void set_lists(const Particles<double>&, Neighborhood<double>& neighborhood) override {
        EXPECT_FALSE(needs_lists_);
        lists_ = neighborhood.lists();
        neighborhood_ = &neighborhood;
    }
    void start(const Particles<double>& particles, const Share& share) override {
        needs_lists_ = true;
        energy_ = share.energy;
        own_ = 3 * static_cast<std::size_t>(particles.local_slots);
        slots_ = particles.slots;
        x_.assign(particles.x.begin(), particles.x.begin() + static_cast<std::ptrdiff_t>(own_));
        EXPECT_EQ(share.first_rows, std::vector<std::int32_t>(lists_.size(), 0));
        EXPECT_TRUE(share.boundary);
    }
    void take_ghosts(const Particles<double>& particles) override {
        x_.insert(x_.end(), particles.x.begin() + static_cast<std::ptrdiff_t>(own_), particles.x.end());
    }
    const double* densities() override {
        needs_lists_ = false;
        if (!survives()) return nullptr;
        sum_.energy = forces_.all_densities(x_.data(), slots_, *neighborhood_, lists_, energy_, density_);
        return density_.data();
    }
    void take_derivatives(std::span<const double> derivatives) override {
        if (!survives()) return;
        sum_.virial = forces_.all_forces(x_.data(), slots_, *neighborhood_, derivatives.data(), energy_, f_);
    }
    const double* ghost_forces(bool) override { return survives() ? f_.data() : nullptr; }
    std::optional<Outcome> finish() override {
        if (!survives()) return std::nullopt;
        return Outcome{sum_, 1e-4, 1e-4, std::span<const double>(f_).first(own_)};
    }

  private:
    bool survives() { return left_ > 0 && --left_ > 0; }

    EamForces<double> forces_;
    int left_;
    bool needs_lists_ = false, energy_ = false;
    std::vector<PairLists> lists_;
    const Neighborhood<double>* neighborhood_ = nullptr;
    AlignedVector<double> x_, density_, f_;
    std::size_t own_ = 0;
    std::int32_t slots_ = 0;
    EnergyVirial sum_;
};

enum class Lists { half, half_without_ghost_newton, full };

Settings settings_of(OffPath way, int every, Lists lists) {
    Settings settings;
    settings.steps = 14;
    settings.reneighbor_every = every;
    settings.thermo_every = 7;
    settings.half_neigh = lists == Lists::full ? 0 : 1;
    settings.ghost_newton = lists == Lists::half;
    settings.offpath = way;
    settings.device = DeviceKind::runtime;
    settings.device_share = 0.5;
    settings.skin_check = SkinCheck::off;
    return settings;
}

Results simulated(const Settings& settings, int lost_after) {
    const Vec3 box{11.8, 11.8, 11.8};
    const Decomposition decomposition(MPI_COMM_WORLD, box);
    const AtomList all = jittered(box, 1.05, 0.1);
    System system;
    system.box = box;
    system.atoms = static_cast<std::int64_t>(all.size());
    system.density = static_cast<double>(all.size()) / (box[0] * box[1] * box[2]);
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!decomposition.contains(all.x[i])) continue;
        system.local.id.push_back(all.id[i]);
        system.local.type.push_back(all.type[i]);
        system.local.x.push_back(all.x[i]);
        system.local.v.push_back(all.v[i]);
    }
    const EamTables tables = smooth_tables();
    Simulation<double> simulation(settings, decomposition, system, &tables);
    std::unique_ptr<Device<double>> device;
    if (settings.potential == Potential::eam)
        device = std::make_unique<FragileEam>(settings, tables, lost_after);
    else
        device = std::make_unique<Fragile>(settings, lost_after);
    if (settings.offpath != OffPath::none)
        simulation.use(std::make_unique<Offload<double>>(settings, simulation.forces(), std::move(device),
                                                         decomposition.comm()));
    return simulation.run();
}

void expect_same(const Results& got, const Results& wanted) {
    ASSERT_EQ(got.thermo.size(), wanted.thermo.size());
    for (std::size_t i = 0; i < wanted.thermo.size(); ++i) {
        EXPECT_NEAR(got.thermo[i].temperature, wanted.thermo[i].temperature, 1e-9);
        EXPECT_NEAR(got.thermo[i].energy, wanted.thermo[i].energy, 1e-9);
        EXPECT_NEAR(got.thermo[i].pressure, wanted.thermo[i].pressure, 1e-9);
    }
}

TEST(Offload, GoesOnWhereSomeRanksHaveLostTheirDevices) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (const int every : {1, 3})
        for (const Lists lists : {Lists::half, Lists::half_without_ghost_newton, Lists::full}) {
            const Results wanted = simulated(settings_of(OffPath::none, every, lists), 0);
            for (const OffPath way : {OffPath::paper, OffPath::balanced})
                for (const int first : {1, 6, 11}) {
                    SCOPED_TRACE(testing::Message() << "every " << every << ", lists " << int(lists)
                                                    << ", way " << int(way) << ", first " << first);
                    const Results got = simulated(settings_of(way, every, lists), first + rank % 5);
                    expect_same(got, wanted);
                }
        }
}

// The trials insert steps of hosts alone between those with devices, and may stay with hosts alone.
TEST(Offload, TriesHostsAlone) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (const Lists lists : {Lists::half, Lists::half_without_ghost_newton, Lists::full}) {
        Settings settings = settings_of(OffPath::none, 1, lists);
        const Results wanted = simulated(settings, 0);
        settings.offpath = OffPath::balanced;
        settings.device_share = -1.0;
        settings.device_trials = false;
        const Results always = simulated(settings, 1000);
        expect_same(always, wanted);
        settings.device_trials = true;
        for (const int lost_after : {20, 31, 1000}) {
            SCOPED_TRACE(testing::Message() << "lists " << int(lists) << ", lost after " << lost_after);
            const Results got = simulated(settings, lost_after + rank % 5);
            expect_same(got, wanted);
            EXPECT_GT(got.counts.device_blocks, 0);
            EXPECT_LT(got.counts.shared_blocks, always.counts.shared_blocks);
        }
    }
}

// The devices are lost at each of the calls of a step, and at none.
TEST(Offload, GoesOnWithEamWhereSomeRanksHaveLostTheirDevices) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    // On five ranks or more, their devices are lost at each call in the same run.
    const bool many = ranks >= 5;
    const std::vector<int> paper_firsts =
        many ? std::vector<int>{5, 8, 1000} : std::vector<int>{5, 6, 7, 8, 1000};
    const std::vector<int> balanced_firsts = many ? std::vector<int>{1, 4} : std::vector<int>{1, 2, 3, 4, 7};
    for (const int every : {1, 3})
        for (const Lists lists : {Lists::half, Lists::half_without_ghost_newton, Lists::full}) {
            Settings settings = settings_of(OffPath::none, every, lists);
            settings.potential = Potential::eam;
            const Results wanted = simulated(settings, 0);
            settings.offpath = OffPath::paper;
            for (const int first : paper_firsts) {
                SCOPED_TRACE(testing::Message()
                             << "every " << every << ", lists " << int(lists) << ", first " << first);
                const Results got = simulated(settings, first + rank % 5);
                expect_same(got, wanted);
                EXPECT_EQ(got.counts.device_blocks > 0, true);
            }
            settings.offpath = OffPath::balanced;
            settings.device_share = -1.0;
            for (const int first : balanced_firsts) {
                SCOPED_TRACE(testing::Message() << "balanced, every " << every << ", lists " << int(lists)
                                                << ", first " << first);
                expect_same(simulated(settings, first + rank % 3), wanted);
            }
        }
}

}  // namespace
}  // namespace minimd
