#include <algorithm>

#include "minimd/domain/halo_plan.h"

namespace minimd {

namespace {

// A ghost on its way to a slot.
struct Arrival {
    std::size_t zone;
    std::int32_t number;  // in its zone
};

// The ghosts of all zones, in the order of their arrival.
template <typename Real>
struct Arrivals {
    std::vector<std::array<std::vector<Real>, 3>> x;  // by zone
    std::vector<std::vector<Arrival>> lists;          // by peer, then by own image

    void add(std::size_t list, std::size_t zone, Real px, Real py, Real pz) {
        lists[list].push_back({zone, static_cast<std::int32_t>(x[zone][0].size())});
        x[zone][0].push_back(px);
        x[zone][1].push_back(py);
        x[zone][2].push_back(pz);
    }
};

template <typename Real>
Arrivals<Real> arrivals(const HaloPlan<Real>& plan, const std::vector<std::vector<Real>>& in,
                        std::size_t zones, const Particles<Real>& particles) {
    Arrivals<Real> all;
    all.x.resize(zones);
    all.lists.resize(plan.peers.size() + plan.own_images.size());
    const auto lanes = static_cast<std::size_t>(particles.layout.lanes);
    for (std::size_t c = 0; c < plan.own_images.size(); ++c) {
        const GhostImage<Real>& image = plan.images[plan.own_images[c]];
        for (const std::int32_t slot : image.slots) {
            const Real* at = particles.x.data() + particles.layout.address(slot);
            all.add(plan.peers.size() + c, image.zone, at[0] + image.shift[0], at[lanes] + image.shift[1],
                    at[2 * lanes] + image.shift[2]);
        }
    }
    for (std::size_t p = 0; p < plan.peers.size(); ++p) {
        const GhostPeer& peer = plan.peers[p];
        const Real* at = in[p].data();
        for (std::size_t i = 0; i < peer.images_in.size(); ++i)
            for (int a = 0; a < peer.counts_in[i]; ++a, at += 3)
                all.add(p, plan.images[peer.images_in[i]].zone, at[0], at[1], at[2]);
    }
    return all;
}

// Sets the columns up over the rectangle of zone `z` in x and y.
template <typename Real>
void set_up_columns(const HaloPlan<Real>& plan, std::size_t z, double column_side, Columns<Real>& columns) {
    const bool eighth = plan.shell == HaloPlan<Real>::Shell::eighth;
    const Vec3 &lo = plan.decomposition.lo(), &hi = plan.decomposition.hi();
    std::array<double, 2> from, to;
    for (std::size_t d = 0; d < 2; ++d) {
        const bool beyond = !eighth || (z >> d & 1) != 0;
        from[d] = !eighth ? lo[d] - plan.range : beyond ? hi[d] : lo[d];
        to[d] = beyond ? hi[d] + plan.range : hi[d];
    }
    columns.set_up(from, to, column_side);
}

}  // namespace

template <typename Real>
std::size_t place_ghosts(HaloPlan<Real>& plan, const std::vector<std::vector<Real>>& in, double column_side,
                         Particles<Real>& particles, std::vector<Zone<Real>>& zones) {
    const Layout layout = particles.layout;
    const auto lanes = static_cast<std::size_t>(layout.lanes);
    const std::size_t zone_count = plan.shell == HaloPlan<Real>::Shell::eighth ? 8 : 2;
    const Arrivals<Real> all = arrivals(plan, in, zone_count, particles);

    zones.resize(zone_count);
    std::vector<std::vector<std::int32_t>> slot_of(zone_count);
    std::vector<std::int32_t> order;
    std::int32_t slot = particles.local_slots;
    std::size_t ghosts = 0;
    for (std::size_t z = 1; z < zone_count; ++z) {
        Zone<Real>& zone = zones[z];
        set_up_columns(plan, z, column_side, zone.columns);
        zone.first_slot = slot;
        slot = zone.columns.sort(layout, slot, all.x[z][0], all.x[z][1], all.x[z][2], order);
        zone.end_slot = slot;
        slot_of[z].resize(all.x[z][0].size());
        ghosts += all.x[z][0].size();
        particles.x.resize(particles.reals(slot));
        for (std::size_t s = 0; s < order.size(); ++s) {
            const std::int32_t to_slot = zone.first_slot + static_cast<std::int32_t>(s);
            Real* at = particles.x.data() + layout.address(to_slot);
            for (std::size_t d = 0; d < 3; ++d)
                at[d * lanes] = order[s] < 0
                                    ? static_cast<Real>(filler_position(to_slot, static_cast<int>(d)))
                                    : all.x[z][d][static_cast<std::size_t>(order[s])];
            if (order[s] >= 0) slot_of[z][static_cast<std::size_t>(order[s])] = to_slot;
        }
    }
    particles.slots = slot;

    const auto slot_at = [&](const Arrival& a) {
        return slot_of[a.zone][static_cast<std::size_t>(a.number)];
    };
    for (std::size_t p = 0; p < plan.peers.size(); ++p)
        std::transform(all.lists[p].begin(), all.lists[p].end(), plan.peers[p].slots_in.begin(), slot_at);
    for (std::size_t c = 0; c < plan.own_images.size(); ++c) {
        const std::vector<Arrival>& list = all.lists[plan.peers.size() + c];
        plan.copies[c].resize(list.size());
        for (std::size_t i = 0; i < list.size(); ++i)
            plan.copies[c][i] = {plan.images[plan.own_images[c]].slots[i], slot_at(list[i])};
    }
    return ghosts;
}

template std::size_t place_ghosts(HaloPlan<float>&, const std::vector<std::vector<float>>&, double,
                                  Particles<float>&, std::vector<Zone<float>>&);
template std::size_t place_ghosts(HaloPlan<double>&, const std::vector<std::vector<double>>&, double,
                                  Particles<double>&, std::vector<Zone<double>>&);

}  // namespace minimd
