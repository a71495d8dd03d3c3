#include "minimd/offpath/rank_device.h"

#include "minimd/domain/wire.h"

namespace minimd {

template <typename Real>
RankDevice<Real>::~RankDevice() {
    say({.verb = Verb::stop});
    settle();
    MPI_Wait(&lists_sent_, MPI_STATUS_IGNORE);
}

template <typename Real>
void RankDevice<Real>::say(Command command) {
    // A command is short enough to leave at once.
    MPI_Send(&command, static_cast<int>(sizeof command), MPI_BYTE, device_, tag_command, comm_);
}

template <typename Real>
void RankDevice<Real>::settle() {
    MPI_Waitall(static_cast<int>(pending_.size()), pending_.data(), MPI_STATUSES_IGNORE);
    pending_.clear();
}

template <typename Real>
void RankDevice<Real>::set_lists(const Particles<Real>& particles, Neighborhood<Real>& neighborhood) {
    MPI_Wait(&lists_sent_, MPI_STATUS_IGNORE);
    std::vector<std::int32_t>& n = list_numbers_;
    n.clear();
    const auto put = [&](const PairList& list) {
        n.push_back(static_cast<std::int32_t>(list.rows.size()));
        n.push_back(static_cast<std::int32_t>(list.blocks.size()));
        const auto* rows = reinterpret_cast<const std::int32_t*>(list.rows.data());
        n.insert(n.end(), rows, rows + list.rows.size() * (sizeof(PairRow) / sizeof(std::int32_t)));
        n.insert(n.end(), list.blocks.begin(), list.blocks.end());
    };
    for (const PairLists& lists : neighborhood.lists()) {
        put(lists.interior);
        put(lists.boundary);
    }
    neighborhood.halo().describe(n);
    say({.verb = Verb::lists,
         .numbers = static_cast<std::int32_t>(n.size()),
         .slots = particles.slots,
         .local_slots = particles.local_slots,
         .lists = static_cast<std::int32_t>(neighborhood.lists().size())});
    MPI_Isend(n.data(), static_cast<int>(n.size()), MPI_INT32_T, device_, tag_device_numbers, comm_,
              &lists_sent_);
}

template <typename Real>
void RankDevice<Real>::start(const Particles<Real>& particles, const Share& share) {
    first_rows_ = share.first_rows;
    say({.verb = Verb::forces,
         .numbers = static_cast<std::int32_t>(first_rows_.size()),
         .slots = particles.slots,
         .local_slots = particles.local_slots,
         .boundary = share.boundary ? 1 : 0,
         .energy = share.energy ? 1 : 0});
    pending_.resize(2);
    MPI_Isend(first_rows_.data(), static_cast<int>(first_rows_.size()), MPI_INT32_T, device_,
              tag_device_numbers, comm_, &pending_[0]);
    MPI_Isend(particles.x.data(), static_cast<int>(particles.reals(particles.local_slots)), mpi_type<Real>(),
              device_, tag_device_reals, comm_, &pending_[1]);
    answer_slots_ = particles.local_slots;
}

template <typename Real>
bool RankDevice<Real>::follow(Migration<Real>& migration) {
    if (!may_follow_) return false;
    record_.clear();
    migration.describe(record_);
    say({.verb = Verb::follow, .numbers = static_cast<std::int32_t>(record_.size())});
    pending_.emplace_back();
    MPI_Isend(record_.data(), static_cast<int>(record_.size()), MPI_INT32_T, device_, tag_device_numbers,
              comm_, &pending_.back());
    answer_slots_ = static_cast<std::int32_t>(migration.origin_of_slot().size());
    return true;
}

template <typename Real>
std::optional<typename Device<Real>::Outcome> RankDevice<Real>::finish(Real* f) {
    say({.verb = Verb::collect});
    forces_.resize(3 * static_cast<std::size_t>(answer_slots_));
    MPI_Recv(forces_.data(), static_cast<int>(forces_.size()), mpi_type<Real>(), device_, tag_device_reals,
             comm_, MPI_STATUS_IGNORE);
    Answer answer;
    MPI_Recv(&answer, static_cast<int>(sizeof answer), MPI_BYTE, device_, tag_command, comm_,
             MPI_STATUS_IGNORE);
    settle();
    const Real* __restrict from = forces_.data();
    for (std::size_t i = 0; i < forces_.size(); ++i)
        f[i] += from[i];
    return typename Device<Real>::Outcome{{answer.energy, answer.virial}, answer.seconds, answer.busy};
}

template class RankDevice<float>;
template class RankDevice<double>;

}  // namespace minimd
