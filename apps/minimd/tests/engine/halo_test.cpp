// A halo whose carrier is lost: some ranks lose it before they finish a move, others after they have finished
// the same move. The forces must be those of a halo that MPI moves, in that step and in all later ones.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

#include "engine.h"
#include "minimd/domain/wire.h"
#include "minimd/dynamics/eam_forces.h"
#include "systems.h"

namespace minimd {
namespace {

// Moves by MPI. All ranks but the losers finish move number `last`; no rank finishes later moves.
template <typename Real>
class FailingCarrier final : public HaloCarrier<Real> {
  public:
    FailingCarrier(MPI_Comm comm, int last, std::set<int> losers) : last_(last), losers_(std::move(losers)) {
        MPI_Comm_dup(comm, &comm_);
        MPI_Comm_rank(comm_, &rank_);
    }
    ~FailingCarrier() override { MPI_Comm_free(&comm_); }

    bool plan(const std::vector<typename HaloCarrier<Real>::Traffic>& peers, bool) override {
        peers_ = peers;
        return true;
    }
    bool carries(Move) const override { return true; }
    Real* out(Move move) override {
        ++moves_;
        std::vector<Real>& out = out_[moves_ % 2];
        out.assign(numbers(move, false), Real{-7});
        return out.data();
    }
    void start(Move move) override {
        if (moves_ > last_) return;
        in_.assign(numbers(move, true), Real{-7});
        requests_.clear();
        std::size_t out = 0, in = 0;
        for (const auto& peer : peers_) {
            const auto count = [&](bool incoming) {
                return static_cast<int>(numbers_per_atom(move)) *
                       (homeward(move) == incoming ? peer.out : peer.in);
            };
            requests_.resize(requests_.size() + 2);
            MPI_Irecv(in_.data() + in, count(true), mpi_type<Real>(), peer.rank, 0, comm_,
                      &requests_[requests_.size() - 2]);
            MPI_Isend(out_[moves_ % 2].data() + out, count(false), mpi_type<Real>(), peer.rank, 0, comm_,
                      &requests_.back());
            in += static_cast<std::size_t>(count(true));
            out += static_cast<std::size_t>(count(false));
        }
    }
    const Real* finish(Move) override {
        if (moves_ > last_) return nullptr;
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
        return moves_ == last_ && losers_.contains(rank_) ? nullptr : in_.data();
    }
    bool can_be_lost() const override { return true; }

    int moves() const { return moves_; }

  private:
    std::size_t numbers(Move move, bool incoming) const {
        std::size_t atoms = 0;
        for (const auto& peer : peers_)
            atoms += static_cast<std::size_t>(homeward(move) == incoming ? peer.out : peer.in);
        return atoms * numbers_per_atom(move);
    }

    MPI_Comm comm_ = MPI_COMM_NULL;
    int rank_ = 0, last_, moves_ = 0;
    std::set<int> losers_;
    std::vector<typename HaloCarrier<Real>::Traffic> peers_;
    std::vector<Real> out_[2], in_;
    std::vector<MPI_Request> requests_;
};

const Vec3 box{9.1, 8.3, 7.7};

// Positions of step `step`: every atom moves a little further, each in its own way.
template <typename Real>
void advance(Engine<Real>& engine, int step) {
    engine.for_each_atom([&](std::int32_t slot, std::int64_t id) {
        Vec3 x = engine.get(engine.particles.x, slot);
        for (std::size_t d = 0; d < 3; ++d)
            x[d] += 1e-3 * static_cast<double>((id * 7 + step + static_cast<std::int64_t>(d)) % 11 - 5);
        engine.set(engine.particles.x, slot, x);
    });
}

// The forces of this rank after every step.
template <typename Real, typename Make>
std::vector<AlignedVector<Real>> run(Engine<Real>& engine, Make&& make) {
    const std::unique_ptr<Forces<Real>> forces = make(engine);
    std::vector<AlignedVector<Real>> found;
    for (int step = 0; step < 7; ++step) {
        const bool fresh = step % 4 == 0;
        if (step > 0) advance(engine, step);
        if (fresh) engine.rebuild(step);
        forces->compute(engine.particles, engine.neighborhood, fresh, true, engine.times);
        // Some ranks may have got here without knowing of the loss.
        if (step % 2 == 1) engine.neighborhood.halo().settle();
        const auto& f = engine.particles.f;
        found.emplace_back(f.begin(), f.begin() + static_cast<std::ptrdiff_t>(
                                                      engine.particles.reals(engine.particles.local_slots)));
    }
    engine.neighborhood.halo().settle();
    return found;
}

// What a halo that MPI moves gives, on this rank.
template <typename Real>
struct Moved {
    std::vector<std::int64_t> id;
    std::vector<AlignedVector<Real>> forces;
};

template <typename Real, typename Make>
Moved<Real> moved_by_mpi(const Settings& settings, Make&& make) {
    Engine<Real> engine(settings, box, jittered(box, 1.05, 0.12));
    const auto forces = run(engine, make);
    return {engine.particles.id, forces};
}

template <typename Real, typename Make>
void check(const Settings& settings, int last, const std::set<int>& losers, const Moved<Real>& wanted,
           Make&& make) {
    Engine<Real> carried(settings, box, jittered(box, 1.05, 0.12));
    FailingCarrier<Real> carrier(MPI_COMM_WORLD, last, losers);
    carried.neighborhood.halo().use(&carrier);
    const auto got = run(carried, make);
    ASSERT_EQ(wanted.id, carried.particles.id);
    for (std::size_t step = 0; step < wanted.forces.size(); ++step) {
        ASSERT_EQ(wanted.forces[step].size(), got[step].size());
        for (std::size_t i = 0; i < got[step].size(); ++i)
            ASSERT_EQ(wanted.forces[step][i], got[step][i]) << "step " << step << ", number " << i;
    }
    if (!carried.neighborhood.halo().travels()) return;
    EXPECT_GE(carrier.moves(), last);
    EXPECT_FALSE(carried.neighborhood.halo().has_carrier());
}

std::vector<std::set<int>> sets_of_losers() {
    int ranks = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::set<int> odd, all;
    for (int r = 0; r < ranks; ++r) {
        all.insert(r);
        if (r % 2 == 1) odd.insert(r);
    }
    return {{0}, {ranks - 1}, odd, all, {}};
}

template <typename Real>
std::unique_ptr<Forces<Real>> lennard_jones(Engine<Real>& engine) {
    return std::make_unique<LennardJonesForces<Real>>(engine.settings, engine.kernel);
}

TEST(HaloHandover, LosesNothingOfLennardJones) {
    for (const int half_neigh : {1, 0}) {
        Settings settings;
        settings.half_neigh = half_neigh;
        const Moved<double> wanted = moved_by_mpi<double>(settings, lennard_jones<double>);
        const Moved<float> single = moved_by_mpi<float>(settings, lennard_jones<float>);
        for (int last = 1; last <= (half_neigh != 0 ? 6 : 3); ++last)
            for (const std::set<int>& losers : sets_of_losers()) {
                SCOPED_TRACE(testing::Message() << "half " << half_neigh << ", lost at move " << last
                                                << " by " << losers.size());
                check(settings, last, losers, wanted, lennard_jones<double>);
                check(settings, last, losers, single, lennard_jones<float>);
                if (testing::Test::HasFatalFailure()) return;
            }
    }
}

TEST(HaloHandover, LosesNothingOfTheEmbeddedAtomMethod) {
    const EamTables tables = smooth_tables();
    const auto eam = [&](Engine<double>& engine) {
        return std::make_unique<EamForces<double>>(engine.settings, engine.kernel, tables);
    };
    for (const int half_neigh : {1, 0}) {
        Settings settings;
        settings.half_neigh = half_neigh;
        const Moved<double> wanted = moved_by_mpi<double>(settings, eam);
        for (int last = 1; last <= (half_neigh != 0 ? 9 : 5); ++last)
            for (const std::set<int>& losers : sets_of_losers()) {
                SCOPED_TRACE(testing::Message() << "half " << half_neigh << ", lost at move " << last
                                                << " by " << losers.size());
                check(settings, last, losers, wanted, eam);
                if (testing::Test::HasFatalFailure()) return;
            }
    }
}

}  // namespace
}  // namespace minimd
