#include "minimd/offpath/tunnel.h"

#include <algorithm>

#include "minimd/domain/wire.h"

namespace minimd {

template <typename Real>
Tunnel<Real>::~Tunnel() {
    say({.verb = Verb::stop});
}

template <typename Real>
void Tunnel<Real>::say(const Command& command) {
    MPI_Send(&command, static_cast<int>(sizeof command), MPI_BYTE, device_, tag_command, comm_);
}

template <typename Real>
bool Tunnel<Real>::plan(const std::vector<typename HaloCarrier<Real>::Traffic>& peers, bool) {
    std::vector<std::int32_t> numbers;
    atoms_out_ = atoms_in_ = 0;
    for (const auto& peer : peers) {
        numbers.insert(numbers.end(), {peer.rank, peer.out, peer.in});
        atoms_out_ += static_cast<std::size_t>(peer.out);
        atoms_in_ += static_cast<std::size_t>(peer.in);
    }
    out_.resize(3 * std::max(atoms_out_, atoms_in_));
    in_.resize(out_.size());
    say({.verb = Verb::tunnel_plan, .numbers = static_cast<std::int32_t>(numbers.size())});
    MPI_Send(numbers.data(), static_cast<int>(numbers.size()), MPI_INT32_T, device_, tag_device_numbers,
             comm_);
    return true;
}

template <typename Real>
void Tunnel<Real>::start(Move move) {
    const std::size_t numbers = 3 * (homeward(move) ? atoms_in_ : atoms_out_);
    say({.verb = Verb::tunnel, .reverse = homeward(move) ? 1 : 0});
    MPI_Isend(out_.data(), static_cast<int>(numbers), mpi_type<Real>(), device_, tag_device_reals, comm_,
              &sent_);
}

template <typename Real>
const Real* Tunnel<Real>::finish(Move move) {
    const std::size_t numbers = 3 * (homeward(move) ? atoms_out_ : atoms_in_);
    MPI_Recv(in_.data(), static_cast<int>(numbers), mpi_type<Real>(), device_, tag_device_reals, comm_,
             MPI_STATUS_IGNORE);
    MPI_Wait(&sent_, MPI_STATUS_IGNORE);
    return in_.data();
}

template <typename Real>
void TunnelExit<Real>::start(MPI_Comm world, int host, bool reverse) {
    const std::size_t sent = reverse ? 2 : 1, received = reverse ? 1 : 2;
    std::size_t out = 0, in = 0;
    for (std::size_t p = 0; p < peers_.size(); p += 3) {
        out += 3 * static_cast<std::size_t>(peers_[p + sent]);
        in += 3 * static_cast<std::size_t>(peers_[p + received]);
    }
    out_.resize(out);
    in_.resize(in);
    MPI_Recv(out_.data(), static_cast<int>(out), mpi_type<Real>(), host, tag_device_reals, world,
             MPI_STATUS_IGNORE);
    requests_.clear();
    std::size_t out_at = 0, in_at = 0;
    const int kind = reverse ? tag_reverse : tag_update, me = decomposition_.rank();
    for (std::size_t p = 0; p < peers_.size(); p += 3) {
        const int peer = peers_[p], process = decomposition_.process(peer);
        requests_.emplace_back();
        MPI_Irecv(in_.data() + in_at, 3 * peers_[p + received], mpi_type<Real>(), process,
                  decomposition_.tag(kind, peer, me), decomposition_.comm(), &requests_.back());
        requests_.emplace_back();
        MPI_Isend(out_.data() + out_at, 3 * peers_[p + sent], mpi_type<Real>(), process,
                  decomposition_.tag(kind, me, peer), decomposition_.comm(), &requests_.back());
        out_at += 3 * static_cast<std::size_t>(peers_[p + sent]);
        in_at += 3 * static_cast<std::size_t>(peers_[p + received]);
    }
}

template <typename Real>
void TunnelExit<Real>::finish(MPI_Comm world, int host) {
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    MPI_Send(in_.data(), static_cast<int>(in_.size()), mpi_type<Real>(), host, tag_device_reals, world);
}

template class Tunnel<float>;
template class Tunnel<double>;
template class TunnelExit<float>;
template class TunnelExit<double>;

}  // namespace minimd
