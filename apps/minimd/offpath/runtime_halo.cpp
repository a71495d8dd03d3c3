#include "minimd/offpath/runtime_halo.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace minimd {

template <typename Real>
RuntimeHalo<Real>::RuntimeHalo(MPI_Comm comm, bool scalars) : comm_(comm), scalars_(scalars), context_(comm) {
    if (status() == OFFPATH_OK) offpath_team_world(context_.handle(), &world_);
}

template <typename Real>
offpath_status_t RuntimeHalo<Real>::record(Lane& lane, const Peers& peers) {
    const std::size_t bytes = numbers_per_atom(lane.move) * sizeof(Real);
    const auto bytes_out = [&](const auto& peer) {
        return bytes * static_cast<std::size_t>(homeward(lane.move) ? peer.in : peer.out);
    };
    const auto bytes_in = [&](const auto& peer) {
        return bytes * static_cast<std::size_t>(homeward(lane.move) ? peer.out : peer.in);
    };
    std::size_t all_out = 0, all_in = 0;
    for (const auto& peer : peers) {
        all_out += bytes_out(peer);
        all_in += bytes_in(peer);
    }
    lane.bytes_out = all_out;
    offpath_status_t status = OFFPATH_OK;
    const auto ok = [&](offpath_status_t said) {
        if (status == OFFPATH_OK) status = said;
        return status == OFFPATH_OK;
    };
    if (lane.group != nullptr) ok(offpath_group_destroy(lane.group));
    lane.group = nullptr;
    for (auto [memory, size] : {std::pair{&lane.out, all_out}, std::pair{&lane.in, all_in}})
        if (!memory->reserve(size)) ok(memory->status());
    if (status != OFFPATH_OK || !ok(offpath_group_create(world_, &lane.group))) return status;
    auto* out = static_cast<std::byte*>(lane.out.data());
    auto* in = static_cast<std::byte*>(lane.in.data());
    for (const auto& peer : peers) {
        const auto rank = static_cast<std::uint32_t>(peer.rank);
        if (bytes_in(peer) > 0) ok(offpath_group_recv(lane.group, in, bytes_in(peer), rank, 0));
        in += bytes_in(peer);
    }
    for (const auto& peer : peers) {
        const auto rank = static_cast<std::uint32_t>(peer.rank);
        if (bytes_out(peer) > 0) ok(offpath_group_send(lane.group, out, bytes_out(peer), rank, 0));
        out += bytes_out(peer);
    }
    ok(offpath_group_end(lane.group));
    return status;
}

template <typename Real>
bool RuntimeHalo<Real>::plan(const Peers& peers, bool both_ways) {
    const bool first = lanes_.empty();
    if (first) {
        const auto lane = [&](Move move) { lanes_.push_back(std::make_unique<Lane>(move, context_)); };
        lane(Move::positions);
        if (scalars_) lane(Move::values);
        if (both_ways) lane(Move::forces);
        if (both_ways && scalars_) lane(Move::sums);
        if (lanes_.size() == 1) lane(Move::positions);
    }
    latest_ = nullptr;
    offpath_status_t status = world_ != nullptr ? OFFPATH_OK : OFFPATH_ERR_UNAVAILABLE;
    for (const auto& lane : lanes_) {
        const offpath_status_t said = world_ != nullptr ? record(*lane, peers) : OFFPATH_OK;
        if (status == OFFPATH_OK) status = said;
    }
    if (!first) {
        lost_ = status == OFFPATH_ERR_PEER_LOST;
        if (status == OFFPATH_OK || lost_) return true;
        throw std::runtime_error(
            fmt::format("--halo offloaded: the device does not take what moves ghosts: {}",
                        offpath_status_string(status)));
    }
    int recorded = status == OFFPATH_OK ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &recorded, 1, MPI_INT, MPI_MIN, comm_);
    return recorded != 0;
}

template <typename Real>
typename RuntimeHalo<Real>::Lane& RuntimeHalo<Real>::lane_of(Move move) {
    const auto at = std::find_if(lanes_.begin(), lanes_.end(), [&](const auto& lane) {
        return lane->move == move && lane.get() != latest_;
    });
    return **at;
}

template <typename Real>
Real* RuntimeHalo<Real>::out(Move move) {
    latest_ = &lane_of(move);
    if (!lost_) return static_cast<Real*>(latest_->out.data());
    spare_.resize(latest_->bytes_out / sizeof(Real));
    return spare_.data();
}

template <typename Real>
void RuntimeHalo<Real>::start(Move) {
    started_ = !lost_ && offpath_group_start(latest_->group) == OFFPATH_OK;
}

template <typename Real>
const Real* RuntimeHalo<Real>::finish(Move) {
    if (!started_ || offpath_group_wait(latest_->group) != OFFPATH_OK) return nullptr;
    return static_cast<const Real*>(latest_->in.data());
}

template class RuntimeHalo<float>;
template class RuntimeHalo<double>;

}  // namespace minimd
