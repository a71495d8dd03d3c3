#include "minimd/domain/halo.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "minimd/domain/wire.h"

namespace minimd {

namespace {

// A ghost on its way to a slot.
struct Arrival {
    std::size_t zone;
    std::int32_t number;  // in its zone
};

}  // namespace

template <typename Real>
Halo<Real>::Halo(const Decomposition& decomposition, double range, Shell shell, double column_side)
    : decomposition_(decomposition), range_(range), shell_(shell), column_side_(column_side) {
    const auto& grid = decomposition.grid();
    std::array<int, 3> need;
    for (std::size_t d = 0; d < 3; ++d)
        need[d] = static_cast<int>(std::ceil(range / (decomposition.box()[d] / grid[d])));
    const bool upward_only = shell == Shell::eighth;
    for (int a = upward_only ? 0 : -need[0]; a <= need[0]; ++a)
        for (int b = upward_only ? 0 : -need[1]; b <= need[1]; ++b)
            for (int c = upward_only ? 0 : -need[2]; c <= need[2]; ++c) {
                if (a == 0 && b == 0 && c == 0) continue;
                Image image;
                image.offset = {a, b, c};
                for (std::size_t d = 0; d < 3; ++d) {
                    const int place = decomposition.place()[d] - image.offset[d];
                    const int wraps = place >= 0 ? place / grid[d] : -((-place + grid[d] - 1) / grid[d]);
                    image.shift[d] = static_cast<Real>(-wraps * decomposition.box()[d]);
                    // The side of the receiver that faces this rank.
                    image.edge[d] = decomposition.lower_bound(static_cast<int>(d),
                                                              image.offset[d] > 0 ? place + 1 : place);
                    if (image.offset[d] != 0) image.zone |= std::size_t{1} << d;
                }
                if (!upward_only) image.zone = 1;
                images_.push_back(image);
            }
    // Image k leaves here for the rank at -offset, and comes here from the rank at +offset.
    const auto rank_at = [&](const std::array<int, 3>& offset, int sign) {
        std::array<int, 3> at;
        for (std::size_t d = 0; d < 3; ++d)
            at[d] = ((decomposition.place()[d] + sign * offset[d]) % grid[d] + grid[d]) % grid[d];
        return (at[0] * grid[1] + at[1]) * grid[2] + at[2];
    };
    const auto peer_of = [&](int rank) -> Peer& {
        const auto found =
            std::find_if(peers_.begin(), peers_.end(), [&](const Peer& p) { return p.rank == rank; });
        if (found != peers_.end()) return *found;
        peers_.push_back({});
        peers_.back().rank = rank;
        return peers_.back();
    };
    for (std::size_t k = 0; k < images_.size(); ++k) {
        const int to = rank_at(images_[k].offset, -1), from = rank_at(images_[k].offset, 1);
        if (to == decomposition.rank()) {
            own_images_.push_back(k);
        } else {
            peer_of(to).images_out.push_back(k);
        }
        if (from != decomposition.rank()) peer_of(from).images_in.push_back(k);
    }
    copies_.resize(own_images_.size());
    requests_.resize(2 * peers_.size());
}

template <typename Real>
void Halo<Real>::select(const Particles<Real>& particles) {
    for (Image& image : images_)
        image.slots.clear();
    const auto lanes = static_cast<std::size_t>(layout_.lanes);
    const Real range = static_cast<Real>(range_), range2 = range * range;
    const Vec3 &lo = decomposition_.lo(), &hi = decomposition_.hi();
    std::array<Real, 3> near_lo, near_hi;
    for (std::size_t d = 0; d < 3; ++d) {
        near_lo[d] = static_cast<Real>(lo[d]) + range;
        near_hi[d] =
            shell_ == Shell::eighth ? std::numeric_limits<Real>::max() : static_cast<Real>(hi[d]) - range;
    }
    for (std::int32_t slot = 0; slot < particles.local_slots; ++slot) {
        const Real* x = particles.x.data() + layout_.address(slot);
        const Real px = x[0], py = x[lanes], pz = x[2 * lanes];
        const bool near = px < near_lo[0] || py < near_lo[1] || pz < near_lo[2] || px >= near_hi[0] ||
                          py >= near_hi[1] || pz >= near_hi[2];
        if (!near || particles.id[static_cast<std::size_t>(slot)] == 0) continue;
        const std::array<Real, 3> p{px, py, pz};
        for (Image& image : images_) {
            Real distance2 = 0;
            for (std::size_t d = 0; d < 3; ++d) {
                if (image.offset[d] == 0) continue;
                const Real edge = static_cast<Real>(image.edge[d]);
                const Real gap = std::max(Real{0}, image.offset[d] > 0 ? p[d] - edge : edge - p[d]);
                distance2 += gap * gap;
            }
            if (distance2 < range2) image.slots.push_back(slot);
        }
    }
}

template <typename Real>
std::size_t Halo<Real>::sent_atoms(const Peer& peer) const {
    std::size_t atoms = 0;
    for (const std::size_t k : peer.images_out)
        atoms += images_[k].slots.size();
    return atoms;
}

template <typename Real>
std::size_t Halo<Real>::bytes_per_update() const {
    std::size_t bytes = 0;
    for (const Peer& peer : peers_)
        bytes += 3 * sizeof(Real) * sent_atoms(peer);
    return bytes;
}

template <typename Real>
void Halo<Real>::exchange_counts() {
    for (std::size_t p = 0; p < peers_.size(); ++p) {
        Peer& peer = peers_[p];
        peer.counts_in.resize(peer.images_in.size());
        peer.counts_out.clear();
        for (const std::size_t k : peer.images_out)
            peer.counts_out.push_back(static_cast<int>(images_[k].slots.size()));
        MPI_Irecv(peer.counts_in.data(), static_cast<int>(peer.counts_in.size()), MPI_INT, peer.rank,
                  tag_ghost_counts, decomposition_.comm(), &requests_[2 * p]);
        MPI_Isend(peer.counts_out.data(), static_cast<int>(peer.counts_out.size()), MPI_INT, peer.rank,
                  tag_ghost_counts, decomposition_.comm(), &requests_[2 * p + 1]);
    }
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
}

template <typename Real>
void Halo<Real>::post_receive(Peer& peer, std::size_t numbers, int tag, MPI_Request& request) {
    peer.in.resize(numbers);
    MPI_Irecv(peer.in.data(), static_cast<int>(numbers), mpi_type<Real>(), decomposition_.process(peer.rank),
              decomposition_.tag(tag, peer.rank, decomposition_.rank()), decomposition_.comm(), &request);
}

template <typename Real>
void Halo<Real>::post_send(Peer& peer, int tag, MPI_Request& request) {
    MPI_Isend(peer.out.data(), static_cast<int>(peer.out.size()), mpi_type<Real>(),
              decomposition_.process(peer.rank), decomposition_.tag(tag, decomposition_.rank(), peer.rank),
              decomposition_.comm(), &request);
}

template <typename Real>
void Halo<Real>::carry(bool reverse) {
    carried_out_.clear();
    for (const Peer& peer : peers_)
        carried_out_.insert(carried_out_.end(), peer.out.begin(), peer.out.end());
    carrier_->start(carried_out_, reverse);
    numbers_carried_ += carried_out_.size();
}

template <typename Real>
void Halo<Real>::receive_carried(bool reverse) {
    std::size_t numbers = 0;
    for (Peer& peer : peers_) {
        peer.in.resize(3 * (reverse ? sent_atoms(peer) : peer.slots_in.size()));
        numbers += peer.in.size();
    }
    carried_in_.resize(numbers);
    carrier_->finish(carried_in_);
    auto at = carried_in_.begin();
    for (Peer& peer : peers_) {
        std::copy_n(at, peer.in.size(), peer.in.begin());
        at += static_cast<std::ptrdiff_t>(peer.in.size());
    }
}

template <typename Real>
void Halo<Real>::describe(std::vector<std::int32_t>& plan) const {
    const auto number = [&](std::size_t n) { plan.push_back(static_cast<std::int32_t>(n)); };
    for (const Image& image : images_) {
        number(image.slots.size());
        plan.insert(plan.end(), image.slots.begin(), image.slots.end());
    }
    for (const Peer& peer : peers_) {
        number(peer.slots_in.size());
        plan.insert(plan.end(), peer.slots_in.begin(), peer.slots_in.end());
    }
    for (const std::vector<Copy>& copies : copies_)
        for (const Copy& copy : copies)
            plan.push_back(copy.to);
}

template <typename Real>
void Halo<Real>::adopt(Layout layout, std::span<const std::int32_t> plan) {
    layout_ = layout;
    std::size_t at = 0;
    const auto take = [&](std::vector<std::int32_t>& into) {
        const auto count = static_cast<std::size_t>(plan[at++]);
        into.assign(plan.begin() + static_cast<std::ptrdiff_t>(at),
                    plan.begin() + static_cast<std::ptrdiff_t>(at + count));
        at += count;
    };
    for (Image& image : images_)
        take(image.slots);
    for (Peer& peer : peers_)
        take(peer.slots_in);
    for (std::size_t c = 0; c < own_images_.size(); ++c) {
        const std::vector<std::int32_t>& from = images_[own_images_[c]].slots;
        copies_[c].resize(from.size());
        for (std::size_t i = 0; i < from.size(); ++i)
            copies_[c][i] = {from[i], plan[at++]};
    }
}

template <typename Real>
void Halo<Real>::build(Particles<Real>& particles, std::vector<Zone<Real>>& zones) {
    layout_ = particles.layout;
    select(particles);
    exchange_counts();
    carried_ = false;
    for (Peer& peer : peers_) {
        std::size_t atoms = 0;
        for (const int count : peer.counts_in)
            atoms += static_cast<std::size_t>(count);
        peer.slots_in.assign(atoms, 0);
    }
    start_update(particles);

    const auto lanes = static_cast<std::size_t>(layout_.lanes);
    const std::size_t zone_count = shell_ == Shell::eighth ? 8 : 2;
    std::vector<std::array<std::vector<Real>, 3>> x(zone_count);
    std::vector<std::vector<Arrival>> arrivals(peers_.size() + own_images_.size());
    const auto arrive = [&](std::vector<Arrival>& list, std::size_t zone, Real px, Real py, Real pz) {
        list.push_back({zone, static_cast<std::int32_t>(x[zone][0].size())});
        x[zone][0].push_back(px);
        x[zone][1].push_back(py);
        x[zone][2].push_back(pz);
    };
    for (std::size_t c = 0; c < own_images_.size(); ++c) {
        const Image& image = images_[own_images_[c]];
        for (const std::int32_t slot : image.slots) {
            const Real* at = particles.x.data() + layout_.address(slot);
            arrive(arrivals[peers_.size() + c], image.zone, at[0] + image.shift[0],
                   at[lanes] + image.shift[1], at[2 * lanes] + image.shift[2]);
        }
    }
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    for (std::size_t p = 0; p < peers_.size(); ++p) {
        const Real* in = peers_[p].in.data();
        for (std::size_t i = 0; i < peers_[p].images_in.size(); ++i)
            for (int a = 0; a < peers_[p].counts_in[i]; ++a, in += 3)
                arrive(arrivals[p], images_[peers_[p].images_in[i]].zone, in[0], in[1], in[2]);
    }

    zones.resize(zone_count);
    std::vector<std::vector<std::int32_t>> slot_of(zone_count);
    std::int32_t slot = particles.local_slots;
    ghosts_ = 0;
    const Vec3 &lo = decomposition_.lo(), &hi = decomposition_.hi();
    for (std::size_t z = 1; z < zone_count; ++z) {
        std::array<double, 2> from, to;
        for (std::size_t d = 0; d < 2; ++d) {
            const bool beyond = shell_ != Shell::eighth || (z >> d & 1) != 0;
            from[d] = shell_ != Shell::eighth ? lo[d] - range_ : beyond ? hi[d] : lo[d];
            to[d] = beyond ? hi[d] + range_ : hi[d];
        }
        Zone<Real>& zone = zones[z];
        zone.columns.set_up(from, to, column_side_);
        zone.first_slot = slot;
        slot = zone.columns.sort(layout_, slot, x[z][0], x[z][1], x[z][2], order_);
        zone.end_slot = slot;
        slot_of[z].resize(x[z][0].size());
        ghosts_ += x[z][0].size();
        particles.x.resize(particles.reals(slot));
        for (std::size_t s = 0; s < order_.size(); ++s) {
            const std::int32_t to_slot = zone.first_slot + static_cast<std::int32_t>(s);
            Real* at = particles.x.data() + layout_.address(to_slot);
            for (std::size_t d = 0; d < 3; ++d)
                at[d * lanes] = order_[s] < 0
                                    ? static_cast<Real>(filler_position(to_slot, static_cast<int>(d)))
                                    : x[z][d][static_cast<std::size_t>(order_[s])];
            if (order_[s] >= 0) slot_of[z][static_cast<std::size_t>(order_[s])] = to_slot;
        }
    }
    particles.slots = slot;
    const auto slot_at = [&](const Arrival& a) {
        return slot_of[a.zone][static_cast<std::size_t>(a.number)];
    };
    for (std::size_t p = 0; p < peers_.size(); ++p)
        for (std::size_t i = 0; i < arrivals[p].size(); ++i)
            peers_[p].slots_in[i] = slot_at(arrivals[p][i]);
    for (std::size_t c = 0; c < own_images_.size(); ++c) {
        const std::vector<Arrival>& list = arrivals[peers_.size() + c];
        copies_[c].resize(list.size());
        for (std::size_t i = 0; i < list.size(); ++i)
            copies_[c][i] = {images_[own_images_[c]].slots[i], slot_at(list[i])};
    }
    if (carrier_ != nullptr && !peers_.empty()) {
        std::vector<typename HaloCarrier<Real>::Traffic> traffic;
        for (const Peer& peer : peers_)
            traffic.push_back({peer.rank, static_cast<std::int32_t>(sent_atoms(peer)),
                               static_cast<std::int32_t>(peer.slots_in.size())});
        carrier_->plan(traffic);
        carried_ = true;
    }
}

template <typename Real>
void Halo<Real>::start_update(const Particles<Real>& particles) {
    const auto lanes = static_cast<std::size_t>(layout_.lanes);
    for (std::size_t p = 0; p < peers_.size() && !carried_; ++p)
        post_receive(peers_[p], 3 * peers_[p].slots_in.size(), tag_update, requests_[2 * p]);
    for (std::size_t p = 0; p < peers_.size(); ++p) {
        Peer& peer = peers_[p];
        peer.out.resize(3 * sent_atoms(peer));
        Real* out = peer.out.data();
        for (const std::size_t k : peer.images_out) {
            const Image& image = images_[k];
            for (const std::int32_t slot : image.slots) {
                const Real* x = particles.x.data() + layout_.address(slot);
                out[0] = x[0] + image.shift[0];
                out[1] = x[lanes] + image.shift[1];
                out[2] = x[2 * lanes] + image.shift[2];
                out += 3;
            }
        }
        if (!carried_) post_send(peer, tag_update, requests_[2 * p + 1]);
    }
    if (carried_) carry(false);
}

template <typename Real>
void Halo<Real>::finish_update(Particles<Real>& particles) {
    const auto lanes = static_cast<std::size_t>(layout_.lanes);
    for (std::size_t c = 0; c < own_images_.size(); ++c) {
        const Image& image = images_[own_images_[c]];
        for (const Copy& copy : copies_[c]) {
            const Real* from = particles.x.data() + layout_.address(copy.from);
            Real* to = particles.x.data() + layout_.address(copy.to);
            to[0] = from[0] + image.shift[0];
            to[lanes] = from[lanes] + image.shift[1];
            to[2 * lanes] = from[2 * lanes] + image.shift[2];
        }
    }
    if (carried_) {
        receive_carried(false);
    } else {
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    }
    for (const Peer& peer : peers_) {
        const Real* in = peer.in.data();
        for (const std::int32_t slot : peer.slots_in) {
            Real* to = particles.x.data() + layout_.address(slot);
            to[0] = in[0];
            to[lanes] = in[1];
            to[2 * lanes] = in[2];
            in += 3;
        }
    }
}

template <typename Real>
void Halo<Real>::start_reverse(const Real* f) {
    const auto lanes = static_cast<std::size_t>(layout_.lanes);
    for (std::size_t p = 0; p < peers_.size() && !carried_; ++p)
        post_receive(peers_[p], 3 * sent_atoms(peers_[p]), tag_reverse, requests_[2 * p]);
    for (std::size_t p = 0; p < peers_.size(); ++p) {
        Peer& peer = peers_[p];
        peer.out.resize(3 * peer.slots_in.size());
        Real* out = peer.out.data();
        for (const std::int32_t slot : peer.slots_in) {
            const Real* from = f + layout_.address(slot);
            out[0] = from[0];
            out[1] = from[lanes];
            out[2] = from[2 * lanes];
            out += 3;
        }
        if (!carried_) post_send(peer, tag_reverse, requests_[2 * p + 1]);
    }
    if (carried_) carry(true);
}

template <typename Real>
void Halo<Real>::finish_reverse(Real* f) {
    const auto lanes = static_cast<std::size_t>(layout_.lanes);
    for (const std::vector<Copy>& copies : copies_)
        for (const Copy& copy : copies) {
            const Real* from = f + layout_.address(copy.to);
            Real* to = f + layout_.address(copy.from);
            to[0] += from[0];
            to[lanes] += from[lanes];
            to[2 * lanes] += from[2 * lanes];
        }
    if (carried_) {
        receive_carried(true);
    } else {
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    }
    for (const Peer& peer : peers_) {
        const Real* in = peer.in.data();
        for (const std::size_t k : peer.images_out)
            for (const std::int32_t slot : images_[k].slots) {
                Real* to = f + layout_.address(slot);
                to[0] += in[0];
                to[lanes] += in[1];
                to[2 * lanes] += in[2];
                in += 3;
            }
    }
}

template <typename Real>
void Halo<Real>::start_update_scalar(const Real* per_slot) {
    for (std::size_t p = 0; p < peers_.size(); ++p)
        post_receive(peers_[p], peers_[p].slots_in.size(), tag_update, requests_[2 * p]);
    for (std::size_t p = 0; p < peers_.size(); ++p) {
        Peer& peer = peers_[p];
        peer.out.clear();
        for (const std::size_t k : peer.images_out)
            for (const std::int32_t slot : images_[k].slots)
                peer.out.push_back(per_slot[slot]);
        post_send(peer, tag_update, requests_[2 * p + 1]);
    }
}

template <typename Real>
void Halo<Real>::finish_update_scalar(Real* per_slot) {
    for (const std::vector<Copy>& copies : copies_)
        for (const Copy& copy : copies)
            per_slot[copy.to] = per_slot[copy.from];
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    for (const Peer& peer : peers_)
        for (std::size_t i = 0; i < peer.slots_in.size(); ++i)
            per_slot[peer.slots_in[i]] = peer.in[i];
}

template <typename Real>
void Halo<Real>::start_reverse_scalar(const Real* per_slot) {
    for (std::size_t p = 0; p < peers_.size(); ++p)
        post_receive(peers_[p], sent_atoms(peers_[p]), tag_reverse, requests_[2 * p]);
    for (std::size_t p = 0; p < peers_.size(); ++p) {
        Peer& peer = peers_[p];
        peer.out.clear();
        for (const std::int32_t slot : peer.slots_in)
            peer.out.push_back(per_slot[slot]);
        post_send(peer, tag_reverse, requests_[2 * p + 1]);
    }
}

template <typename Real>
void Halo<Real>::finish_reverse_scalar(Real* per_slot) {
    for (const std::vector<Copy>& copies : copies_)
        for (const Copy& copy : copies)
            per_slot[copy.from] += per_slot[copy.to];
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    for (const Peer& peer : peers_) {
        std::size_t i = 0;
        for (const std::size_t k : peer.images_out)
            for (const std::int32_t slot : images_[k].slots)
                per_slot[slot] += peer.in[i++];
    }
}

template class Halo<float>;
template class Halo<double>;

}  // namespace minimd
