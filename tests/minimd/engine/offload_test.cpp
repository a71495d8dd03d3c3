// Ranks that lose their devices one after the other, at any step, give the table of hosts alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "minimd/dynamics/simulation.h"
#include "minimd/offpath/offload.h"
#include "systems.h"

namespace minimd {
namespace {

// Computes interior pairs on the spot, as a device of the runtime would, until it is lost.
class Fragile final : public Device<double> {
  public:
    Fragile(const Settings& settings, int shares)
        : parameters_{settings.cutoff, settings.epsilon, settings.sigma, 1}, left_(shares) {}

    bool takes_boundary() const override { return false; }
    void set_lists(const Particles<double>&, Neighborhood<double>& neighborhood) override {
        lists_ = neighborhood.lists();
        both_sides_ = neighborhood.both_sides(false);
    }
    void start(const Particles<double>& particles, const Share& share) override {
        f_.assign(particles.reals(particles.slots), 0.0);
        sum_ = {};
        for (std::size_t t = 0; t < lists_.size(); ++t) {
            const PairList& list = lists_[t].interior;
            const auto first = static_cast<std::size_t>(share.first_rows[t]);
            sum_ += kernels<double>().lennard_jones(particles.x.data(), f_.data(),
                                                    list.view(first, list.rows.size() - first), parameters_,
                                                    {share.energy, both_sides_});
        }
        if (!both_sides_) sum_ = {0.5 * sum_.energy, 0.5 * sum_.virial};
    }
    std::optional<Outcome> finish() override {
        if (left_-- == 0) return std::nullopt;
        return Outcome{sum_, 1e-4, 1e-4, f_};
    }

  private:
    LjParameters parameters_;
    int left_;
    std::vector<PairLists> lists_;
    AlignedVector<double> f_;
    EnergyVirial sum_;
    bool both_sides_ = true;
};

Settings settings_of(OffPath way, int every, int half_neigh) {
    Settings settings;
    settings.steps = 14;
    settings.reneighbor_every = every;
    settings.thermo_every = 7;
    settings.half_neigh = half_neigh;
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
    Simulation<double> simulation(settings, decomposition, system);
    if (settings.offpath != OffPath::none)
        simulation.use(std::unique_ptr<Device<double>>(std::make_unique<Fragile>(settings, lost_after)));
    return simulation.run();
}

TEST(Offload, GoesOnWhereSomeRanksHaveLostTheirDevices) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (const int every : {1, 3})
        for (const int half_neigh : {1, 0}) {
            const Results wanted = simulated(settings_of(OffPath::none, every, half_neigh), 0);
            for (const OffPath way : {OffPath::paper, OffPath::balanced})
                for (const int first : {0, 3}) {
                    SCOPED_TRACE(testing::Message() << "every " << every << ", half_neigh " << half_neigh
                                                    << ", way " << int(way) << ", first " << first);
                    const Results got = simulated(settings_of(way, every, half_neigh), first + rank % 3);
                    ASSERT_EQ(got.thermo.size(), wanted.thermo.size());
                    for (std::size_t i = 0; i < wanted.thermo.size(); ++i) {
                        EXPECT_NEAR(got.thermo[i].temperature, wanted.thermo[i].temperature, 1e-9);
                        EXPECT_NEAR(got.thermo[i].energy, wanted.thermo[i].energy, 1e-9);
                        EXPECT_NEAR(got.thermo[i].pressure, wanted.thermo[i].pressure, 1e-9);
                    }
                }
        }
}

}  // namespace
}  // namespace minimd
