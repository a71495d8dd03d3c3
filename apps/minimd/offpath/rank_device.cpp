#include "minimd/offpath/rank_device.h"

#include <algorithm>

#include "minimd/domain/wire.h"
#include "minimd/offpath/pieces.h"

namespace minimd {

template <typename Real>
RankDevice<Real>::~RankDevice() {
    say({.verb = Verb::stop});
    settle();
    MPI_Waitall(static_cast<int>(lists_sent_.size()), lists_sent_.data(), MPI_STATUSES_IGNORE);
}

template <typename Real>
void RankDevice<Real>::say(Command command) {
    command.piece_bytes = piece_bytes_;
    // A command is short enough to be sent at once.
    MPI_Send(&command, static_cast<int>(sizeof command), MPI_BYTE, device_, tag_command, comm_);
}

template <typename Real>
template <typename T>
void RankDevice<Real>::send_pieces(const T* data, std::size_t count, MPI_Datatype type, int tag,
                                   std::vector<MPI_Request>& requests) {
    in_pieces(count, sizeof(T), piece_bytes_, [&](std::size_t first, std::size_t in_piece) {
        requests.emplace_back();
        MPI_Isend(data + first, static_cast<int>(in_piece), type, device_, tag, comm_, &requests.back());
    });
}

template <typename Real>
void RankDevice<Real>::settle() {
    MPI_Waitall(static_cast<int>(pending_.size()), pending_.data(), MPI_STATUSES_IGNORE);
    pending_.clear();
}

template <typename Real>
void RankDevice<Real>::set_lists(const Particles<Real>& particles, Neighborhood<Real>& neighborhood) {
    MPI_Waitall(static_cast<int>(lists_sent_.size()), lists_sent_.data(), MPI_STATUSES_IGNORE);
    lists_sent_.clear();
    const auto send = [&](const std::int32_t* data, std::size_t numbers) {
        send_pieces(data, numbers, MPI_INT32_T, tag_device_numbers, lists_sent_);
    };
    std::vector<std::int32_t>& n = list_numbers_;
    n.clear();
    const auto both = [&](auto call) {
        for (const PairLists& lists : neighborhood.lists()) {
            call(lists.interior);
            call(lists.boundary);
        }
    };
    both([&](const PairList& list) {
        n.push_back(static_cast<std::int32_t>(list.rows.size()));
        n.push_back(static_cast<std::int32_t>(list.blocks.size()));
    });
    neighborhood.halo().describe(n);
    say({.verb = Verb::lists,
         .numbers = static_cast<std::int32_t>(n.size()),
         .slots = particles.slots,
         .local_slots = particles.local_slots,
         .lists = static_cast<std::int32_t>(neighborhood.lists().size())});
    send(n.data(), n.size());
    // The lists are sent from where they are. The rebuild after the next one overwrites a list, and before
    // that set_lists() is called again and waits for these sends.
    both([&](const PairList& list) {
        send(reinterpret_cast<const std::int32_t*>(list.rows.data()),
             list.rows.size() * (sizeof(PairRow) / sizeof(std::int32_t)));
        send(list.blocks.data(), list.blocks.size());
    });
}

template <typename Real>
void RankDevice<Real>::start(const Particles<Real>& particles, const Share& share) {
    started_ = Stopwatch();
    first_rows_ = share.first_rows;
    say({.verb = Verb::forces,
         .numbers = static_cast<std::int32_t>(first_rows_.size()),
         .slots = particles.slots,
         .local_slots = particles.local_slots,
         .boundary = share.boundary ? 1 : 0,
         .energy = share.energy ? 1 : 0});
    send_pieces(first_rows_.data(), first_rows_.size(), MPI_INT32_T, tag_device_numbers, pending_);
    send_pieces(particles.x.data(), particles.reals(particles.local_slots), mpi_type<Real>(),
                tag_device_reals, pending_);
    answer_slots_ = particles.local_slots;
}

template <typename Real>
bool RankDevice<Real>::follow(Migration<Real>& migration) {
    if (!may_follow_) return false;
    record_.clear();
    migration.describe(record_);
    say({.verb = Verb::follow, .numbers = static_cast<std::int32_t>(record_.size())});
    send_pieces(record_.data(), record_.size(), MPI_INT32_T, tag_device_numbers, pending_);
    answer_slots_ = static_cast<std::int32_t>(migration.origin_of_slot().size());
    return true;
}

template <typename Real>
std::optional<typename Device<Real>::Outcome> RankDevice<Real>::finish() {
    say({.verb = Verb::collect});
    forces_.resize(3 * static_cast<std::size_t>(answer_slots_));
    MPI_Recv(forces_.data(), static_cast<int>(forces_.size()), mpi_type<Real>(), device_, tag_device_reals,
             comm_, MPI_STATUS_IGNORE);
    Answer answer;
    MPI_Recv(&answer, static_cast<int>(sizeof answer), MPI_BYTE, device_, tag_command, comm_,
             MPI_STATUS_IGNORE);
    settle();
    double elapsed = 0.0;
    started_.lap(elapsed);
    return typename Device<Real>::Outcome{{answer.energy, answer.virial},
                                          answer.seconds,
                                          std::max(answer.seconds, elapsed - answer.waited),
                                          forces_};
}

template class RankDevice<float>;
template class RankDevice<double>;

}  // namespace minimd
