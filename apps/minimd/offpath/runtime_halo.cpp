#include "minimd/offpath/runtime_halo.h"

#include <algorithm>

namespace minimd {

template <typename Real>
RuntimeHalo<Real>::RuntimeHalo(MPI_Comm comm, bool scalars) : comm_(comm), scalars_(scalars), context_(comm) {
    if (status() == OFFPATH_OK) offpath_team_world(context_.handle(), &world_);
}

template <typename Real>
bool RuntimeHalo<Real>::record(Lane& lane, const Peers& peers) {
    if (lane.group != nullptr && offpath_group_destroy(lane.group) != OFFPATH_OK) return false;
    lane.group = nullptr;
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
    if (!lane.out.reserve(all_out) || !lane.in.reserve(all_in)) return false;
    if (offpath_group_create(world_, &lane.group) != OFFPATH_OK) return false;
    auto* out = static_cast<std::byte*>(lane.out.data());
    auto* in = static_cast<std::byte*>(lane.in.data());
    bool recorded = true;
    for (const auto& peer : peers) {
        const auto rank = static_cast<std::uint32_t>(peer.rank);
        if (bytes_in(peer) > 0)
            recorded &= offpath_group_recv(lane.group, in, bytes_in(peer), rank, 0) == OFFPATH_OK;
        in += bytes_in(peer);
    }
    for (const auto& peer : peers) {
        const auto rank = static_cast<std::uint32_t>(peer.rank);
        if (bytes_out(peer) > 0)
            recorded &= offpath_group_send(lane.group, out, bytes_out(peer), rank, 0) == OFFPATH_OK;
        out += bytes_out(peer);
    }
    return recorded && offpath_group_end(lane.group) == OFFPATH_OK;
}

template <typename Real>
bool RuntimeHalo<Real>::plan(const Peers& peers, bool both_ways) {
    if (lanes_.empty()) {
        const auto lane = [&](Move move) {
            lanes_.push_back(std::make_unique<Lane>(move, context_.handle()));
        };
        lane(Move::positions);
        if (scalars_) lane(Move::values);
        if (both_ways) lane(Move::forces);
        if (both_ways && scalars_) lane(Move::sums);
        if (lanes_.size() == 1) lane(Move::positions);
    }
    latest_ = nullptr;
    int recorded = world_ != nullptr ? 1 : 0;
    for (const auto& lane : lanes_)
        if (recorded != 0 && !record(*lane, peers)) recorded = 0;
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
    return static_cast<Real*>(latest_->out.data());
}

template <typename Real>
void RuntimeHalo<Real>::start(Move) {
    started_ = offpath_group_start(latest_->group) == OFFPATH_OK;
}

template <typename Real>
const Real* RuntimeHalo<Real>::finish(Move) {
    if (!started_ || offpath_group_wait(latest_->group) != OFFPATH_OK) return nullptr;
    return static_cast<const Real*>(latest_->in.data());
}

template class RuntimeHalo<float>;
template class RuntimeHalo<double>;

}  // namespace minimd
