#include "minimd/offpath/offload.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "minimd/base/stopwatch.h"

namespace minimd {

namespace {

std::size_t blocks_of(const std::vector<PairLists>& lists, bool boundary) {
    std::size_t blocks = 0;
    for (const PairLists& each : lists)
        blocks += (boundary ? each.boundary : each.interior).blocks.size();
    return blocks;
}

std::size_t blocks_before(const std::vector<PairLists>& lists, const std::vector<std::int32_t>& first) {
    std::size_t blocks = 0;
    for (std::size_t t = 0; t < lists.size(); ++t) {
        const auto& rows = lists[t].interior.rows;
        const auto row = static_cast<std::size_t>(first[t]);
        blocks +=
            row < rows.size() ? static_cast<std::size_t>(rows[row].begin) : lists[t].interior.blocks.size();
    }
    return blocks;
}

// Returns the number of interior rows of each list.
std::vector<std::int32_t> row_counts(const std::vector<PairLists>& lists) {
    std::vector<std::int32_t> counts;
    for (const PairLists& each : lists)
        counts.push_back(static_cast<std::int32_t>(each.interior.rows.size()));
    return counts;
}

template <typename Real>
void add(std::span<const Real> forces, Real* __restrict to) {
    const Real* __restrict from = forces.data();
    for (std::size_t i = 0; i < forces.size(); ++i)
        to[i] += from[i];
}

// Pairs that are listed from both of their atoms count half.
EnergyVirial weighted(EnergyVirial sum, bool both_sides) {
    const double weight = both_sides ? 1.0 : 0.5;
    return {weight * sum.energy, weight * sum.virial};
}

}  // namespace

template <typename Real>
Offload<Real>::Offload(const Settings& settings, Forces<Real>& forces, std::unique_ptr<Device<Real>> device,
                       MPI_Comm comm)
    : settings_(settings),
      forces_(forces),
      divisible_(dynamic_cast<LennardJonesForces<Real>*>(&forces)),
      hosts_move_ghosts_(device->ghost_mover() == GhostMover::hosts),
      shares_(divisible_ != nullptr || device->takes_parts()),
      comm_(comm),
      device_(std::move(device)) {
    if (divisible_ == nullptr && !device_->takes_undivided())
        throw std::invalid_argument("these devices compute Lennard-Jones forces only");
    if (auto* eam = dynamic_cast<EamForces<Real>*>(&forces); eam != nullptr && hosts_move_ghosts_)
        eam_ = std::make_unique<EamOffload<Real>>(*eam);
}

template <typename Real>
typename Offload<Real>::RowNumbers Offload<Real>::first_rows(const std::vector<PairLists>& lists,
                                                             double share) const {
    RowNumbers first;
    for (const PairLists& each : lists) {
        const auto& rows = each.interior.rows;
        const auto keep = static_cast<std::int32_t>(
            std::lround((1.0 - share) * static_cast<double>(each.interior.blocks.size())));
        const auto at = std::lower_bound(rows.begin(), rows.end(), keep,
                                         [](const PairRow& row, std::int32_t n) { return row.begin < n; });
        first.push_back(static_cast<std::int32_t>(share <= 0.0 ? static_cast<std::ptrdiff_t>(rows.size())
                                                               : at - rows.begin()));
    }
    return first;
}

template <typename Real>
EnergyVirial Offload<Real>::host_rows(const Neighborhood<Real>& neighborhood, const Real* x,
                                      const std::vector<PairLists>& lists, const RowNumbers& begin,
                                      const RowNumbers& end, bool energy, AlignedVector<Real>& f) {
    if (divisible_ == nullptr) return {};
    std::vector<PairRows> parts;
    for (std::size_t t = 0; t < lists.size(); ++t)
        parts.push_back(lists[t].interior.view(static_cast<std::size_t>(begin[t]),
                                               static_cast<std::size_t>(end[t] - begin[t])));
    const bool both_sides = neighborhood.both_sides(false);
    return weighted(divisible_->rows(x, parts, both_sides, energy, f), both_sides);
}

template <typename Real>
EnergyVirial Offload<Real>::boundary_rows(const Neighborhood<Real>& neighborhood, const Real* x,
                                          const std::vector<PairLists>& lists, bool energy,
                                          AlignedVector<Real>& f) {
    std::vector<PairRows> parts;
    for (const PairLists& each : lists)
        parts.push_back(each.boundary.view());
    const bool both_sides = neighborhood.both_sides(true);
    return weighted(divisible_->rows(x, parts, both_sides, energy, f), both_sides);
}

template <typename Real>
void Offload<Real>::take_ghosts_home(Neighborhood<Real>& neighborhood, Real* f) {
    if (neighborhood.shell() != Neighborhood<Real>::Shell::eighth) return;
    neighborhood.halo().start_reverse(f);
    neighborhood.halo().finish_reverse(f);
}

template <typename Real>
void Offload<Real>::account(Balance& balance, std::size_t all, std::size_t devices,
                            const typename Device<Real>::Outcome& outcome) {
    balance.measured_device(devices, outcome.seconds, outcome.busy);
    shared_.device += outcome.seconds;
    shared_.between += outcome.busy - outcome.seconds;
    shared_blocks_ += static_cast<std::int64_t>(all);
    device_blocks_ += static_cast<std::int64_t>(devices);
}

template <typename Real>
void Offload<Real>::lose_device() {
    std::fprintf(stderr, "minimd: the device is lost: the host computes its share, and all from now on\n");
    device_.reset();
}

template <typename Real>
void Offload<Real>::calibrate(Particles<Real>& particles, Neighborhood<Real>& neighborhood,
                              double rebuild_seconds) {
    if (!device_ || !balances()) return;
    rebuild_seconds_ = rebuild_seconds;
    if (eam_) {
        calibrate_eam(particles, neighborhood);
        return;
    }
    const std::vector<PairLists>& lists = neighborhood.lists();
    const bool takes_boundary = !hosts_move_ghosts_;
    const Share share{first_rows(lists, 1.0), takes_boundary, false};
    const std::size_t interior = blocks_of(lists, false),
                      devices = interior + (takes_boundary ? blocks_of(lists, true) : 0);
    std::optional<typename Device<Real>::Outcome> outcome;
    double computing = 0.0;
    old_f_.resize(particles.reals(particles.slots));
    // The first run takes longer, so the second one counts.
    for (int time = 0; time < 2; ++time) {
        device_->start(particles, share);
        std::fill(old_f_.begin(), old_f_.end(), Real{0});
        Stopwatch watch;
        host_rows(neighborhood, particles.x.data(), lists, share.first_rows, row_counts(lists), false,
                  old_f_);
        computing = 0.0;
        watch.lap(computing);
        outcome = device_->finish();
        if (!outcome) {
            lose_device();
            return;
        }
    }
    if (!shares_) {
        weigh(particles, neighborhood, outcome->busy);
        return;
    }
    const double boundary = computing / static_cast<double>(std::max<std::size_t>(interior, 1)) *
                            static_cast<double>(blocks_of(lists, true));
    for (Balance* balance : {&in_rebuilds_, &in_others_}) {
        balance->measured_host(interior, computing, 0.0);
        balance->measured_device(devices, outcome->seconds, outcome->busy);
    }
    in_rebuilds_.expect_host_busy(rebuild_seconds);
    in_others_.expect_host_busy(takes_boundary ? 0.0 : boundary);
}

template <typename Real>
void Offload<Real>::calibrate_eam(Particles<Real>& particles, Neighborhood<Real>& neighborhood) {
    const std::vector<PairLists>& lists = neighborhood.lists();
    const Share share{first_rows(lists, 1.0), true, false};
    const std::size_t interior = blocks_of(lists, false), boundary = blocks_of(lists, true);
    double all = 0.0, alone = 0.0;
    // The first run takes longer, so the second one counts.
    for (int time = 0; time < 2; ++time) {
        Stopwatch watch;
        Times ignored;
        if (device_) {
            device_->start(particles, share);
            device_->take_ghosts(particles);
        }
        eam_->exchange({particles.x.data(), particles.layout, particles.local_slots, particles.slots,
                        &neighborhood, &lists, &neighborhood.halo(), share.first_rows},
                       device_.get(), false, ignored);
        const auto result = eam_->finish(device_.get(), old_f_, ignored);
        all = alone = 0.0;
        watch.lap(all);
        forces_.compute(particles, neighborhood, true, false, ignored);
        watch.lap(alone);
        if (device_ && !result.outcome) lose_device();
        if (!result.outcome || !shares_) continue;
        const double block = alone / static_cast<double>(std::max<std::size_t>(interior + boundary, 1));
        for (Balance* balance : {&in_rebuilds_, &in_others_}) {
            balance->measured_host(interior, block * static_cast<double>(interior), 0.0);
            balance->measured_device(interior + boundary, result.outcome->seconds, result.outcome->busy);
        }
        in_rebuilds_.expect_host_busy(rebuild_seconds_);
        in_others_.expect_host_busy(block * static_cast<double>(boundary));
    }
    if (!shares_) weigh(particles, neighborhood, all);
}

template <typename Real>
void Offload<Real>::weigh(Particles<Real>& particles, Neighborhood<Real>& neighborhood, double device) {
    double slowest[] = {0.0, device, rebuild_seconds_};
    Stopwatch watch;
    Times ignored;
    forces_.compute(particles, neighborhood, true, false, ignored);
    watch.lap(slowest[0]);
    MPI_Allreduce(MPI_IN_PLACE, slowest, 3, MPI_DOUBLE, MPI_MAX, comm_);
    trial_.begin_with(std::max(slowest[1], slowest[2]) < slowest[0] + slowest[2]);
}

template <typename Real>
void Offload<Real>::rebuilt(double seconds, Neighborhood<Real>& neighborhood) {
    if (trial_.settles()) neighborhood.halo().settle();
    trial_.ended(seconds, comm_);
}

template <typename Real>
EnergyVirial Offload<Real>::ordinary(Particles<Real>& particles, Neighborhood<Real>& neighborhood, bool fresh,
                                     bool energy, Times& times) {
    if (!device_ || !trial_.now() || !shares_ || settings_.offpath == OffPath::paper ||
        (settings_.offpath == OffPath::balanced && !settings_.share_ordinary_steps))
        return forces_.compute(particles, neighborhood, fresh, energy, times);
    if (eam_) return ordinary_eam(particles, neighborhood, fresh, energy, times);

    Stopwatch watch;
    const std::vector<PairLists>& lists = neighborhood.lists();
    const std::size_t interior = blocks_of(lists, false), boundary = blocks_of(lists, true);
    const bool takes_boundary = !hosts_move_ghosts_ && (settings_.split_boundary || settings_.device_ghosts);
    const double part =
        settings_.split_boundary ? 0.0 : in_others_.share(interior, takes_boundary ? boundary : 0);
    const Share share{first_rows(lists, part), takes_boundary, energy};
    const Stopwatch started;
    device_->start(particles, share);
    watch.lap(times.force);
    shared_.starting += started.seconds();

    Halo<Real>& halo = neighborhood.halo();
    if (!takes_boundary && !fresh) halo.start_update(particles);
    watch.lap(times.communication);
    particles.f.resize(particles.reals(particles.slots));
    std::fill(particles.f.begin(), particles.f.end(), Real{0});
    Elapsed computing;
    EnergyVirial sum = host_rows(neighborhood, particles.x.data(), lists, RowNumbers(lists.size(), 0),
                                 share.first_rows, energy, particles.f);
    watch.lap(computing);
    const std::size_t own_blocks = blocks_before(lists, share.first_rows);
    times.force += computing;
    if (!takes_boundary) {
        if (!fresh) halo.finish_update(particles);
        watch.lap(times.communication);
        const Stopwatch at_boundary;
        sum += boundary_rows(neighborhood, particles.x.data(), lists, energy, particles.f);
        shared_.computing += at_boundary.seconds();
        watch.lap(times.force);
        take_ghosts_home(neighborhood, particles.f.data());
        watch.lap(times.communication);
    }
    in_others_.measured_host(own_blocks, computing.wall, started.seconds() - computing.wall);
    shared_.computing += computing.wall;
    const Stopwatch waiting;
    const auto outcome = device_->finish();
    shared_.waiting += waiting.seconds();
    if (outcome) add(outcome->forces, particles.f.data() + outcome->first);
    watch.lap(times.force);
    if (outcome) {
        account(in_others_, interior + boundary, interior - own_blocks + (takes_boundary ? boundary : 0),
                *outcome);
        return sum += outcome->sum;
    }
    lose_device();
    sum += host_rows(neighborhood, particles.x.data(), lists, share.first_rows, row_counts(lists), energy,
                     particles.f);
    watch.lap(times.force);
    return sum;
}

template <typename Real>
EnergyVirial Offload<Real>::ordinary_eam(Particles<Real>& particles, Neighborhood<Real>& neighborhood,
                                         bool fresh, bool energy, Times& times) {
    const std::vector<PairLists>& lists = neighborhood.lists();
    const std::size_t interior = blocks_of(lists, false);
    const Share share{first_rows(lists, in_others_.share(interior, 0)), false, energy};
    const Stopwatch started;
    Stopwatch watch;
    device_->start(particles, share);
    watch.lap(times.force);
    shared_.starting += started.seconds();
    eam_->exchange(
        {particles.x.data(), particles.layout, particles.local_slots, particles.slots, &neighborhood, &lists,
         &neighborhood.halo(), share.first_rows, false, fresh ? nullptr : &particles},
        device_.get(), energy, times);
    const auto result = eam_->finish(device_.get(), particles.f, times);
    watch = Stopwatch();
    const std::size_t own_blocks = blocks_before(lists, share.first_rows);
    account_eam(in_others_, own_blocks, started.seconds());
    if (result.outcome) {
        add(result.outcome->forces, particles.f.data() + result.outcome->first);
        account(in_others_, interior + blocks_of(lists, true), interior - own_blocks, *result.outcome);
    } else {
        lose_device();
    }
    watch.lap(times.force);
    return result.sum;
}

template <typename Real>
void Offload<Real>::account_eam(Balance& balance, std::size_t own, double seconds) {
    const typename EamOffload<Real>::Spent& spent = eam_->spent();
    balance.measured_host(own, spent.rows, seconds - spent.rows - spent.waiting - spent.between);
    shared_.computing += spent.rows;
    shared_.waiting += spent.waiting;
}

template <typename Real>
void Offload<Real>::send_home(Neighborhood<Real>& neighborhood, bool energy, bool wait, Boundary& boundary) {
    if (boundary.going_home) return;
    const Real* forces = device_ ? device_->ghost_forces(wait) : nullptr;
    if (forces == nullptr && device_ && !wait) return;
    if (forces != nullptr) {
        const std::size_t own = old_own_reals_, all = old_f_.size();
        std::copy(forces + own, forces + all, old_f_.begin() + static_cast<std::ptrdiff_t>(own));
    } else {
        boundary.sum = boundary_rows(neighborhood, neighborhood.migration().old_x().data(),
                                     neighborhood.old_lists(), energy, old_f_);
        boundary.by_host = true;
    }
    old_halo_->start_reverse(old_f_.data());
    boundary.going_home = true;
}

template <typename Real>
EnergyVirial Offload<Real>::instead_of_device(Neighborhood<Real>& neighborhood, const Share& share,
                                              bool energy, Boundary& boundary) {
    const std::vector<PairLists>& lists = neighborhood.old_lists();
    const Real* x = neighborhood.migration().old_x().data();
    EnergyVirial sum = host_rows(neighborhood, x, lists, share.first_rows, row_counts(lists), energy, old_f_);
    if (boundary.by_host) return sum;
    boundary.by_host = true;
    if (!boundary.going_home) return sum += boundary_rows(neighborhood, x, lists, energy, old_f_);
    // The device's forces on ghosts have already been sent and stay as they are.
    spare_f_.assign(old_f_.size(), Real{0});
    sum += boundary_rows(neighborhood, x, lists, energy, spare_f_);
    add(std::span<const Real>(spare_f_).first(old_own_reals_), old_f_.data());
    return sum;
}

template <typename Real>
EnergyVirial Offload<Real>::finish_eam(Particles<Real>& particles, Neighborhood<Real>& neighborhood,
                                       const Share& share, const Stopwatch& started, Times& times) {
    Stopwatch watch;
    // The device takes the new lists while it computes.
    lists_changed(particles, neighborhood);
    watch.lap(times.force);
    const auto result = eam_->finish(device_.get(), old_f_, times);
    const Real* devices = nullptr;
    if (result.outcome) {
        const std::vector<PairLists>& lists = neighborhood.old_lists();
        const std::size_t blocks = blocks_of(lists, false) + blocks_of(lists, true);
        const std::size_t own_blocks = blocks_before(lists, share.first_rows);
        account_eam(in_rebuilds_, own_blocks, started.seconds());
        account(in_rebuilds_, blocks, blocks - own_blocks, *result.outcome);
        devices = result.outcome->forces.data();
    } else if (device_) {
        lose_device();
    }
    watch = Stopwatch();
    particles.f.resize(particles.reals(particles.slots));
    neighborhood.migration().follow(old_f_.data(), particles.f.data(), devices);
    watch.lap(times.communication);
    return result.sum;
}

template <typename Real>
EnergyVirial Offload<Real>::rebuild(Particles<Real>& particles, Neighborhood<Real>& neighborhood,
                                    std::int64_t step, bool energy, Times& times) {
    Stopwatch watch;
    const std::size_t interior = blocks_of(neighborhood.lists(), false),
                      boundary = blocks_of(neighborhood.lists(), true);
    const bool all = settings_.offpath == OffPath::paper || !shares_;
    const double part = !device_ ? 0.0 : all ? 1.0 : in_rebuilds_.share(interior, boundary);
    const Share share{first_rows(neighborhood.lists(), part), true, energy};
    const Stopwatch started;
    if (device_) device_->start(particles, share);
    shared_.starting += started.seconds();
    const std::int32_t old_local_slots = particles.local_slots, old_slots = particles.slots;
    old_own_reals_ = particles.reals(particles.local_slots);
    old_f_.resize(particles.reals(particles.slots));
    std::fill(old_f_.begin(), old_f_.end(), Real{0});
    watch.lap(times.force);
    if (hosts_move_ghosts_) {
        neighborhood.halo().start_update(particles);
        if (!old_halo_) old_halo_ = neighborhood.new_halo();
        old_plan_.clear();
        neighborhood.halo().describe(old_plan_);
        old_halo_->adopt(particles.layout, old_plan_);
        watch.lap(times.communication);
    }

    bool follows = false;
    Migration<Real>& migration = neighborhood.migration();
    const auto exchanged = [&] {
        if (!hosts_move_ghosts_) return;
        neighborhood.halo().finish_update(particles);
        if (device_) device_->take_ghosts(particles);
        neighborhood.halo().settle();
    };
    const auto settled = [&] { follows = all && !hosts_move_ghosts_ && device_->follow(migration); };
    const auto searched = [&] {
        if (!eam_) return;
        eam_->exchange({migration.old_x().data(), particles.layout, old_local_slots, old_slots, &neighborhood,
                        &neighborhood.old_lists(), old_halo_.get(), share.first_rows},
                       device_.get(), energy, times);
    };
    neighborhood.rebuild(particles, step, times, {exchanged, settled, searched});
    double rebuilt = 0.0;
    watch.lap(rebuilt);  // rebuild() has accounted for it
    const bool ahead = device_ && device_->lists_ahead();
    if (ahead) lists_changed(particles, neighborhood);
    watch.lap(times.force);
    if (eam_) return finish_eam(particles, neighborhood, share, started, times);

    const std::vector<PairLists>& lists = neighborhood.old_lists();
    const Real* x = migration.old_x().data();
    const bool home = hosts_move_ghosts_ && neighborhood.shell() == Neighborhood<Real>::Shell::eighth;
    Boundary old;
    EnergyVirial sum;
    Elapsed computing;
    // The host computes its rows in two halves, because forces on ghosts may arrive in between.
    RowNumbers begin(lists.size(), 0), end = share.first_rows;
    for (std::int32_t& row : end)
        row /= 2;
    for (const bool last : {false, true}) {
        if (home) send_home(neighborhood, energy, false, old);
        watch.lap(times.communication);
        if (last) {
            begin = end;
            end = share.first_rows;
        }
        sum += host_rows(neighborhood, x, lists, begin, end, energy, old_f_);
        watch.lap(computing);
    }
    times.force += computing;
    const std::size_t own_blocks = blocks_before(lists, share.first_rows);
    particles.f.resize(particles.reals(particles.slots));
    in_rebuilds_.measured_host(own_blocks, computing.wall, started.seconds() - computing.wall);
    shared_.computing += computing.wall;

    const Stopwatch waiting;
    if (home) send_home(neighborhood, energy, true, old);
    const Real* devices = nullptr;
    std::optional<typename Device<Real>::Outcome> outcome;
    if (device_) outcome = device_->finish();
    shared_.waiting += waiting.seconds();
    if (outcome) {
        devices = outcome->forces.data();
        if (follows) std::copy_n(devices, particles.reals(particles.local_slots), particles.f.data());
        sum += outcome->sum;
        account(in_rebuilds_, interior + boundary, interior - own_blocks + boundary, *outcome);
    } else {
        if (device_) lose_device();
        sum += instead_of_device(neighborhood, share, energy, old);
    }
    sum += old.sum;
    watch.lap(times.force);
    if (home) old_halo_->finish_reverse(old_f_.data());
    watch.lap(times.communication);
    // The device takes the new lists while the host continues.
    if (!ahead) lists_changed(particles, neighborhood);
    watch.lap(times.force);
    if (!follows) migration.follow(old_f_.data(), particles.f.data(), devices);
    watch.lap(times.communication);
    return sum;
}

template class Offload<float>;
template class Offload<double>;

}  // namespace minimd
