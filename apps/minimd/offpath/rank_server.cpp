#include "minimd/offpath/rank_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "minimd/base/stopwatch.h"
#include "minimd/domain/wire.h"
#include "minimd/dynamics/eam_forces.h"
#include "minimd/dynamics/forces.h"
#include "minimd/dynamics/neighborhood.h"
#include "minimd/kernels/threads.h"
#include "minimd/offpath/pieces.h"
#include "minimd/offpath/protocol.h"
#include "minimd/offpath/tunnel.h"

namespace minimd {

namespace {

// Returns the seats of all hosts' stand-ins among the devices.
std::vector<Seat> seats_of(const ServerPlaces& places) {
    std::vector<Seat> seats;
    for (std::size_t host = 0; host < places.device_of_host.size(); ++host) {
        Seat seat;
        seat.process = places.device_of_host[host];
        for (std::size_t before = 0; before < host; ++before)
            seat.index += places.device_of_host[before] == seat.process ? 1 : 0;
        seats.push_back(seat);
    }
    return seats;
}

// All that a device knows about one host.
template <typename Real>
class StandIn {
  public:
    StandIn(const Settings& settings, const ServerPlaces& places, const System& system,
            const EamTables* tables, const Kernels<Real>& kernels, std::size_t which)
        : world_(places.world),
          host_(places.hosts[which]),
          threads_(settings.threads),
          decomposition_(places.devices, system.box, places.host_numbers[which], seats_of(places)),
          neighborhood_(settings, decomposition_, kernels, system.density),
          tunnel_(decomposition_),
          forces_(settings, kernels) {
        particles_.layout.lanes = kernels.lanes;
        if (settings.potential == Potential::eam)
            undivided_ = std::make_unique<EamForces<Real>>(settings, kernels, *tables);
    }

    Command next_command() {
        Command command;
        MPI_Recv(&command, static_cast<int>(sizeof command), MPI_BYTE, host_, tag_command, world_,
                 MPI_STATUS_IGNORE);
        piece_bytes_ = command.piece_bytes;
        return command;
    }

    void take_lists(const Command& command) {
        receive_numbers(command.numbers);
        particles_.slots = command.slots;
        particles_.local_slots = command.local_slots;
        particles_.x.resize(particles_.reals(particles_.slots));
        for (std::int32_t slot = particles_.local_slots; slot < particles_.slots; ++slot)
            for (int d = 0; d < 3; ++d)
                particles_.position(slot)[d * particles_.layout.lanes] =
                    static_cast<Real>(filler_position(slot, d));
        // The lists of all threads of the host become one; `starts_` tells where each began.
        lists_.clear();
        starts_.assign(1, 0);
        const std::int32_t* sizes = numbers_.data();
        for (std::int32_t list = 0; list < command.lists; ++list, sizes += 4) {
            receive_list(lists_.interior, sizes[0], sizes[1]);
            starts_.push_back(lists_.interior.rows.size());
            receive_list(lists_.boundary, sizes[2], sizes[3]);
        }
        neighborhood_.halo().adopt(particles_.layout, std::span<const std::int32_t>(numbers_).subspan(
                                                          4 * static_cast<std::size_t>(command.lists)));
        if (undivided_) deal_out();
    }

    void take_positions(const Command& command) {
        command_ = command;
        receive_numbers(command.numbers);
        receive_pieces(particles_.x.data(), particles_.reals(command.local_slots), mpi_type<Real>(),
                       tag_device_reals);
        if (command.boundary != 0 && !undivided_) neighborhood_.halo().start_update(particles_);
    }

    // Computes forces that are not divisible; this includes the ghosts' travels.
    void compute_undivided(int slowness) {
        if (!undivided_) return;
        Stopwatch watch;
        Times ignored;
        seconds_ = 0.0;
        for (int time = 0; time < slowness; ++time)
            sum_ = undivided_->compute(particles_, neighborhood_, false, command_.energy != 0, ignored);
        answer_slots_ = particles_.local_slots;
        watch.lap(seconds_);
    }

    void compute_interior(int slowness) {
        if (undivided_) return;
        Stopwatch watch;
        seconds_ = 0.0;
        chosen_.rows.clear();
        for (std::size_t list = 0; list + 1 < starts_.size(); ++list) {
            const auto first = starts_[list] + static_cast<std::size_t>(numbers_[list]);
            chosen_.rows.insert(
                chosen_.rows.end(), lists_.interior.rows.begin() + static_cast<std::ptrdiff_t>(first),
                lists_.interior.rows.begin() + static_cast<std::ptrdiff_t>(starts_[list + 1]));
        }
        particles_.f.resize(particles_.reals(particles_.slots));
        sum_ = {};
        // All repetitions but the last have no effect: they only take the time that a slower device would
        // need.
        for (int time = 0; time < slowness; ++time) {
            std::fill(particles_.f.begin(), particles_.f.end(), Real{0});
            sum_ = over({chosen_.rows, lists_.interior.blocks.data()}, false);
        }
        watch.lap(seconds_);
    }

    void compute_boundary(int slowness) {
        if (command_.boundary == 0 || undivided_) return;
        neighborhood_.halo().finish_update(particles_);
        Stopwatch watch;
        if (slowness > 1) {
            spare_.assign(particles_.f.begin(), particles_.f.end());
            for (int time = 1; time < slowness; ++time)
                over(lists_.boundary.view(), true);
            particles_.f.swap(spare_);
        }
        sum_ += over(lists_.boundary.view(), true);
        watch.lap(seconds_);
        if (ghosts_have_forces()) neighborhood_.halo().start_reverse(particles_.f.data());
    }

    void take_ghosts_home() {
        if (undivided_) return;
        if (command_.boundary != 0 && ghosts_have_forces())
            neighborhood_.halo().finish_reverse(particles_.f.data());
        answer_slots_ = particles_.local_slots;
    }

    void follow(const Command& command) {
        receive_numbers(command.numbers);
        Migration<Real>& migration = neighborhood_.migration();
        migration.adopt(particles_.layout, numbers_);
        answer_slots_ = static_cast<std::int32_t>(migration.origin_of_slot().size());
        spare_.resize(3 * static_cast<std::size_t>(answer_slots_));
        migration.follow(particles_.f.data(), spare_.data());
        particles_.f.swap(spare_);
    }

    void answer(double waited) {
        MPI_Send(particles_.f.data(), 3 * answer_slots_, mpi_type<Real>(), host_, tag_device_reals, world_);
        const Answer answer{sum_.energy, sum_.virial, seconds_, waited};
        MPI_Send(&answer, static_cast<int>(sizeof answer), MPI_BYTE, host_, tag_command, world_);
    }

    void plan_tunnel(const Command& command) {
        receive_numbers(command.numbers);
        tunnel_.plan(numbers_);
    }
    void start_tunnel(const Command& command) { tunnel_.start(world_, host_, command.reverse != 0); }
    void finish_tunnel() { tunnel_.finish(world_, host_); }

  private:
    void receive_numbers(std::int32_t count) {
        numbers_.resize(static_cast<std::size_t>(count));
        receive_pieces(numbers_.data(), numbers_.size(), MPI_INT32_T, tag_device_numbers);
    }

    template <typename T>
    void receive_pieces(T* data, std::size_t count, MPI_Datatype type, int tag) {
        in_pieces(count, sizeof(T), piece_bytes_, [&](std::size_t first, std::size_t in_piece) {
            MPI_Recv(data + first, static_cast<int>(in_piece), type, host_, tag, world_, MPI_STATUS_IGNORE);
        });
    }

    void receive_list(PairList& list, std::int32_t rows, std::int32_t blocks) {
        constexpr std::size_t row_numbers = sizeof(PairRow) / sizeof(std::int32_t);
        const std::size_t first_row = list.rows.size(), first_block = list.blocks.size();
        list.rows.resize(first_row + static_cast<std::size_t>(rows));
        list.blocks.resize(first_block + static_cast<std::size_t>(blocks));
        receive_pieces(reinterpret_cast<std::int32_t*>(list.rows.data() + first_row),
                       static_cast<std::size_t>(rows) * row_numbers, MPI_INT32_T, tag_device_numbers);
        receive_pieces(list.blocks.data() + first_block, static_cast<std::size_t>(blocks), MPI_INT32_T,
                       tag_device_numbers);
        const auto shift = static_cast<std::int32_t>(first_block);
        for (std::size_t r = first_row; shift > 0 && r < list.rows.size(); ++r) {
            list.rows[r].begin += shift;
            list.rows[r].end += shift;
        }
    }

    bool ghosts_have_forces() const { return neighborhood_.shell() == Neighborhood<Real>::Shell::eighth; }

    // Gives the threads of this device equal parts of the rows.
    EnergyVirial over(const PairRows& pairs, bool boundary) {
        const bool both_sides = neighborhood_.both_sides(boundary);
        const std::vector<PairRows> parts = equal_parts(pairs, static_cast<std::size_t>(threads_));
        const EnergyVirial sum =
            forces_.rows(particles_.x.data(), parts, both_sides, command_.energy != 0, particles_.f);
        const double weight = both_sides ? 1.0 : 0.5;
        return {weight * sum.energy, weight * sum.virial};
    }

    // Deals the lists out as undivided forces need them: each thread gets its own list.
    void deal_out() {
        std::vector<PairLists>& lists = neighborhood_.lists();
        if (lists.size() == 1) {
            std::swap(lists[0], lists_);
            return;
        }
        const auto deal = [&](const PairList& from, PairList PairLists::*kind) {
            const std::vector<PairRows> parts = equal_parts(from.view(), lists.size());
            for (std::size_t t = 0; t < lists.size(); ++t) {
                PairList& to = lists[t].*kind;
                to.clear();
                if (parts[t].rows.empty()) continue;
                const std::int32_t begin = parts[t].rows.front().begin, end = parts[t].rows.back().end;
                to.blocks.assign(from.blocks.begin() + begin, from.blocks.begin() + end);
                for (PairRow row : parts[t].rows) {
                    row.begin -= begin;
                    row.end -= begin;
                    to.rows.push_back(row);
                }
            }
        };
        deal(lists_.interior, &PairLists::interior);
        deal(lists_.boundary, &PairLists::boundary);
    }

    MPI_Comm world_;
    int host_;
    int threads_;
    std::int32_t piece_bytes_ = 0;
    Decomposition decomposition_;
    Neighborhood<Real> neighborhood_;
    TunnelExit<Real> tunnel_;
    LennardJonesForces<Real> forces_;
    std::unique_ptr<Forces<Real>> undivided_;  // replaces forces_
    Particles<Real> particles_;
    PairLists lists_;
    PairList chosen_;
    std::vector<std::size_t> starts_;
    std::vector<std::int32_t> numbers_;
    AlignedVector<Real> spare_;
    Command command_;
    EnergyVirial sum_;
    double seconds_ = 0.0;
    std::int32_t answer_slots_ = 0;
};

}  // namespace

template <typename Real>
void serve(const Settings& settings, const ServerPlaces& places, const System& system,
           const EamTables* tables, int lanes, int slowness) {
    const Kernels<Real>& chosen = kernels<Real>(lanes);
    std::vector<std::unique_ptr<StandIn<Real>>> hosts;
    for (std::size_t which = 0; which < places.hosts.size(); ++which)
        hosts.push_back(std::make_unique<StandIn<Real>>(settings, places, system, tables, chosen, which));
    std::vector<Command> commands(hosts.size());
    for (;;) {
        Stopwatch idle;
        double waited = 0.0;
        for (std::size_t h = 0; h < hosts.size(); ++h)
            commands[h] = hosts[h]->next_command();
        idle.lap(waited);
        // Runs each phase for all hosts before the next, so that messages between their stand-ins meet.
        const auto all = [&](auto phase) {
            for (std::size_t h = 0; h < hosts.size(); ++h)
                phase(*hosts[h], commands[h]);
        };
        switch (commands[0].verb) {
            case Verb::lists:
                all([](StandIn<Real>& host, const Command& command) { host.take_lists(command); });
                break;
            case Verb::forces:
                all([](StandIn<Real>& host, const Command& command) { host.take_positions(command); });
                all([&](StandIn<Real>& host, const Command&) { host.compute_undivided(slowness); });
                all([&](StandIn<Real>& host, const Command&) { host.compute_interior(slowness); });
                all([&](StandIn<Real>& host, const Command&) { host.compute_boundary(slowness); });
                all([](StandIn<Real>& host, const Command&) { host.take_ghosts_home(); });
                break;
            case Verb::follow:
                all([](StandIn<Real>& host, const Command& command) { host.follow(command); });
                break;
            case Verb::collect:
                all([&](StandIn<Real>& host, const Command&) { host.answer(waited); });
                break;
            case Verb::tunnel_plan:
                all([](StandIn<Real>& host, const Command& command) { host.plan_tunnel(command); });
                break;
            case Verb::tunnel:
                all([](StandIn<Real>& host, const Command& command) { host.start_tunnel(command); });
                all([](StandIn<Real>& host, const Command&) { host.finish_tunnel(); });
                break;
            case Verb::stop:
                return;
        }
    }
}

template void serve<float>(const Settings&, const ServerPlaces&, const System&, const EamTables*, int, int);
template void serve<double>(const Settings&, const ServerPlaces&, const System&, const EamTables*, int, int);

}  // namespace minimd
