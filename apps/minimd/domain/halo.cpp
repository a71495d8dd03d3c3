#include "minimd/domain/halo.h"

#include <algorithm>
#include <type_traits>

#include "minimd/domain/patience.h"
#include "minimd/domain/wire.h"

namespace minimd {

template <typename Real>
Halo<Real>::Halo(const Decomposition& decomposition, double range, Shell shell, double column_side,
                 bool blocking)
    : decomposition_(decomposition),
      column_side_(column_side),
      blocking_(blocking),
      plan_(decomposition, range, shell),
      buffers_(plan_.peers.size()),
      requests_(2 * plan_.peers.size(), MPI_REQUEST_NULL) {}

template <typename Real>
std::size_t Halo<Real>::bytes_per_update() const {
    std::size_t bytes = 0;
    for (const GhostPeer& peer : plan_.peers)
        bytes += sizeof(Real) * numbers_out(peer, Move::positions);
    return bytes;
}

template <typename Real>
void Halo<Real>::adopt(Layout layout, std::span<const std::int32_t> plan) {
    layout_ = layout;
    plan_.adopt(plan);
}

template <typename Real>
int Halo<Real>::tag_of(Move move) {
    return homeward(move) ? tag_reverse : tag_update;
}

template <typename Real>
void Halo<Real>::post_receive(std::size_t p, Move move, int tag, MPI_Request& request) {
    const GhostPeer& peer = plan_.peers[p];
    std::vector<Real>& in = buffers_[p].in;
    in.resize(numbers_in(peer, move));
    request = MPI_REQUEST_NULL;
    if (in.empty()) return;
    MPI_Irecv(in.data(), static_cast<int>(in.size()), mpi_type<Real>(), decomposition_.process(peer.rank),
              decomposition_.tag(tag, peer.rank, decomposition_.rank()), decomposition_.comm(), &request);
}

template <typename Real>
void Halo<Real>::post_send(std::size_t p, Move move, int tag, const Real* from, MPI_Request& request) {
    const GhostPeer& peer = plan_.peers[p];
    const std::size_t numbers = numbers_out(peer, move);
    request = MPI_REQUEST_NULL;
    if (numbers == 0) return;
    MPI_Isend(from, static_cast<int>(numbers), mpi_type<Real>(), decomposition_.process(peer.rank),
              decomposition_.tag(tag, decomposition_.rank(), peer.rank), decomposition_.comm(), &request);
}

template <typename Real>
void Halo<Real>::wait(std::vector<MPI_Request>& requests) {
    calls_.in([&] { MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE); });
}

template <typename Real>
void Halo<Real>::await(std::vector<MPI_Request>& requests) {
    if (carrier_ == nullptr) {
        wait(requests);
        return;
    }
    calls_.in([&] {
        wait_patiently([&] {
            int all = 0;
            MPI_Testall(static_cast<int>(requests.size()), requests.data(), &all, MPI_STATUSES_IGNORE);
            return all != 0;
        });
    });
}

template <typename Real>
void Halo<Real>::poll() {
    int all = 0;
    if (current_.out != nullptr) return;
    calls_.in([&] {
        MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &all, MPI_STATUSES_IGNORE);
    });
}

template <typename Real>
template <typename Pack>
void Halo<Real>::start(Move move, const Pack& pack) {
    if (planned_ && carrier_->carries(move)) {
        Real* out = carrier_->out(move);
        current_ = {move, out};
        for (const GhostPeer& peer : plan_.peers) {
            pack(peer, out);
            out += numbers_out(peer, move);
        }
        numbers_carried_ += static_cast<std::size_t>(out - current_.out);
        calls_.in([&] { carrier_->start(move); });
        return;
    }
    post_receives(move, tag_of(move));
    send(move, tag_of(move), pack);
    if (blocking_) wait(requests_);
}

template <typename Real>
void Halo<Real>::post_receives(Move move, int tag) {
    calls_.in([&] {
        for (std::size_t p = 0; p < plan_.peers.size(); ++p)
            post_receive(p, move, tag, requests_[2 * p]);
    });
}

template <typename Real>
template <typename Pack>
void Halo<Real>::send(Move move, int tag, const Pack& pack) {
    for (std::size_t p = 0; p < plan_.peers.size(); ++p) {
        std::vector<Real>& out = buffers_[p].out;
        out.resize(numbers_out(plan_.peers[p], move));
        pack(plan_.peers[p], out.data());
        calls_.in([&] { post_send(p, move, tag, out.data(), requests_[2 * p + 1]); });
    }
}

template <typename Real>
template <typename Unpack>
void Halo<Real>::finish(Move move, const Unpack& unpack) {
    const Real* in = nullptr;
    if (current_.out != nullptr) {
        in = calls_.in([&] { return carrier_->finish(move); });
        if (in == nullptr) {
            hand_over();
        } else {
            ++finished_;
            before_last_ = last_;
            last_ = current_;
        }
        current_ = {};
    } else {
        wait(requests_);
    }
    for (std::size_t p = 0; p < plan_.peers.size(); ++p) {
        const GhostPeer& peer = plan_.peers[p];
        unpack(peer, in != nullptr ? in : buffers_[p].in.data());
        if (in != nullptr) in += numbers_in(peer, move);
    }
}

template <typename Real>
void Halo<Real>::start_build(const Particles<Real>& particles) {
    layout_ = particles.layout;
    planned_ = false;
    plan_.select(particles);
    calls_.in([&] { plan_.start_counts(count_requests_); });
    send(Move::positions, tag_ghosts,
         [&](const GhostPeer& peer, Real* out) { pack_positions(particles, peer, out); });
    if (blocking_) receive_ghosts();
}

template <typename Real>
void Halo<Real>::receive_ghosts() {
    await(count_requests_);
    plan_.take_counts();
    post_receives(Move::positions, tag_ghosts);
    await(requests_);
}

template <typename Real>
void Halo<Real>::finish_build(Particles<Real>& particles, std::vector<Zone<Real>>& zones) {
    if (!blocking_) receive_ghosts();
    std::vector<std::vector<Real>> in;
    for (Buffers& buffers : buffers_)
        in.push_back(std::move(buffers.in));
    ghosts_ = place_ghosts(plan_, in, column_side_, particles, zones);
    for (std::size_t p = 0; p < in.size(); ++p)
        buffers_[p].in = std::move(in[p]);
    plan_carrier();
}

template <typename Real>
void Halo<Real>::plan_carrier() {
    if (carrier_ == nullptr || !travels()) return;
    std::vector<typename HaloCarrier<Real>::Traffic> traffic;
    for (const GhostPeer& peer : plan_.peers)
        traffic.push_back({peer.rank, static_cast<std::int32_t>(plan_.atoms_out(peer)),
                           static_cast<std::int32_t>(peer.slots_in.size())});
    planned_ = calls_.in([&] { return carrier_->plan(traffic, plan_.shell == Shell::eighth); });
    if (!planned_) carrier_ = nullptr;
}

template <typename Real>
void Halo<Real>::pack_positions(const Particles<Real>& particles, const GhostPeer& peer, Real* out) const {
    const auto lanes = static_cast<std::size_t>(layout_.lanes);
    for (const std::size_t k : peer.images_out) {
        const GhostImage<Real>& image = plan_.images[k];
        for (const std::int32_t slot : image.slots) {
            const Real* x = particles.x.data() + layout_.address(slot);
            out[0] = x[0] + image.shift[0];
            out[1] = x[lanes] + image.shift[1];
            out[2] = x[2 * lanes] + image.shift[2];
            out += 3;
        }
    }
}

template <typename Real>
void Halo<Real>::start_update(const Particles<Real>& particles) {
    start(Move::positions, [&](const GhostPeer& peer, Real* out) { pack_positions(particles, peer, out); });
}

template <typename Real>
void Halo<Real>::finish_update(Particles<Real>& particles) {
    const auto lanes = static_cast<std::size_t>(layout_.lanes);
    for (std::size_t c = 0; c < plan_.own_images.size(); ++c) {
        const GhostImage<Real>& image = plan_.images[plan_.own_images[c]];
        for (const GhostCopy& copy : plan_.copies[c]) {
            const Real* from = particles.x.data() + layout_.address(copy.from);
            Real* to = particles.x.data() + layout_.address(copy.to);
            to[0] = from[0] + image.shift[0];
            to[lanes] = from[lanes] + image.shift[1];
            to[2 * lanes] = from[2 * lanes] + image.shift[2];
        }
    }
    finish(Move::positions, [&](const GhostPeer& peer, const Real* in) {
        for (const std::int32_t slot : peer.slots_in) {
            Real* to = particles.x.data() + layout_.address(slot);
            to[0] = in[0];
            to[lanes] = in[1];
            to[2 * lanes] = in[2];
            in += 3;
        }
    });
}

template <typename Real>
void Halo<Real>::start_reverse(const Real* f) {
    const auto lanes = static_cast<std::size_t>(layout_.lanes);
    start(Move::forces, [&](const GhostPeer& peer, Real* out) {
        for (const std::int32_t slot : peer.slots_in) {
            const Real* from = f + layout_.address(slot);
            out[0] = from[0];
            out[1] = from[lanes];
            out[2] = from[2 * lanes];
            out += 3;
        }
    });
}

template <typename Real>
void Halo<Real>::finish_reverse(Real* f) {
    const auto lanes = static_cast<std::size_t>(layout_.lanes);
    for (const std::vector<GhostCopy>& copies : plan_.copies)
        for (const GhostCopy& copy : copies) {
            const Real* from = f + layout_.address(copy.to);
            Real* to = f + layout_.address(copy.from);
            to[0] += from[0];
            to[lanes] += from[lanes];
            to[2 * lanes] += from[2 * lanes];
        }
    finish(Move::forces, [&](const GhostPeer& peer, const Real* in) {
        for (const std::size_t k : peer.images_out)
            for (const std::int32_t slot : plan_.images[k].slots) {
                Real* to = f + layout_.address(slot);
                to[0] += in[0];
                to[lanes] += in[1];
                to[2 * lanes] += in[2];
                in += 3;
            }
    });
}

template <typename Real>
void Halo<Real>::start_update_scalar(const Real* per_slot) {
    start(Move::values, [&](const GhostPeer& peer, Real* out) {
        for (const std::size_t k : peer.images_out)
            for (const std::int32_t slot : plan_.images[k].slots)
                *out++ = per_slot[slot];
    });
}

template <typename Real>
void Halo<Real>::finish_update_scalar(Real* per_slot) {
    for (const std::vector<GhostCopy>& copies : plan_.copies)
        for (const GhostCopy& copy : copies)
            per_slot[copy.to] = per_slot[copy.from];
    finish(Move::values, [&](const GhostPeer& peer, const Real* in) {
        for (const std::int32_t slot : peer.slots_in)
            per_slot[slot] = *in++;
    });
}

template <typename Real>
void Halo<Real>::start_reverse_scalar(const Real* per_slot) {
    start(Move::sums, [&](const GhostPeer& peer, Real* out) {
        for (const std::int32_t slot : peer.slots_in)
            *out++ = per_slot[slot];
    });
}

template <typename Real>
void Halo<Real>::finish_reverse_scalar(Real* per_slot) {
    for (const std::vector<GhostCopy>& copies : plan_.copies)
        for (const GhostCopy& copy : copies)
            per_slot[copy.from] += per_slot[copy.to];
    finish(Move::sums, [&](const GhostPeer& peer, const Real* in) {
        for (const std::size_t k : peer.images_out)
            for (const std::int32_t slot : plan_.images[k].slots)
                per_slot[slot] += *in++;
    });
}

template class Halo<float>;
template class Halo<double>;

}  // namespace minimd
