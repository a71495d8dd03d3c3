#include "minimd/domain/halo_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "minimd/domain/wire.h"

namespace minimd {

template <typename Real>
HaloPlan<Real>::HaloPlan(const Decomposition& grid_of_ranks, double reach, Shell kind)
    : decomposition(grid_of_ranks), range(reach), shell(kind) {
    const auto& grid = decomposition.grid();
    std::array<int, 3> need;
    for (std::size_t d = 0; d < 3; ++d)
        need[d] = static_cast<int>(std::ceil(range / (decomposition.box()[d] / grid[d])));
    const bool upward_only = shell == Shell::eighth;
    for (int a = upward_only ? 0 : -need[0]; a <= need[0]; ++a)
        for (int b = upward_only ? 0 : -need[1]; b <= need[1]; ++b)
            for (int c = upward_only ? 0 : -need[2]; c <= need[2]; ++c) {
                if (a == 0 && b == 0 && c == 0) continue;
                GhostImage<Real> image;
                image.offset = {a, b, c};
                for (std::size_t d = 0; d < 3; ++d) {
                    const int place = decomposition.place()[d] - image.offset[d];
                    const int wraps = place >= 0 ? place / grid[d] : -((-place + grid[d] - 1) / grid[d]);
                    image.shift[d] = static_cast<Real>(-wraps * decomposition.box()[d]);
                    // The receiver's side that faces this rank.
                    image.edge[d] = decomposition.lower_bound(static_cast<int>(d),
                                                              image.offset[d] > 0 ? place + 1 : place);
                    if (image.offset[d] != 0) image.zone |= std::size_t{1} << d;
                }
                if (!upward_only) image.zone = 1;
                images.push_back(image);
            }
    // Image k goes from here to the rank at -offset, and arrives here from the rank at +offset.
    const auto rank_at = [&](const std::array<int, 3>& offset, int sign) {
        std::array<int, 3> at;
        for (std::size_t d = 0; d < 3; ++d)
            at[d] = ((decomposition.place()[d] + sign * offset[d]) % grid[d] + grid[d]) % grid[d];
        return (at[0] * grid[1] + at[1]) * grid[2] + at[2];
    };
    const auto peer_of = [&](int rank) -> GhostPeer& {
        const auto found =
            std::find_if(peers.begin(), peers.end(), [&](const GhostPeer& p) { return p.rank == rank; });
        if (found != peers.end()) return *found;
        peers.push_back({});
        peers.back().rank = rank;
        return peers.back();
    };
    for (std::size_t k = 0; k < images.size(); ++k) {
        const int to = rank_at(images[k].offset, -1), from = rank_at(images[k].offset, 1);
        if (to == decomposition.rank()) {
            own_images.push_back(k);
        } else {
            peer_of(to).images_out.push_back(k);
        }
        if (from != decomposition.rank()) peer_of(from).images_in.push_back(k);
    }
    copies.resize(own_images.size());
}

template <typename Real>
void HaloPlan<Real>::select(const Particles<Real>& particles) {
    for (GhostImage<Real>& image : images)
        image.slots.clear();
    const Layout layout = particles.layout;
    const auto lanes = static_cast<std::size_t>(layout.lanes);
    const Real reach = static_cast<Real>(range), reach2 = reach * reach;
    const Vec3 &lo = decomposition.lo(), &hi = decomposition.hi();
    std::array<Real, 3> near_lo, near_hi;
    for (std::size_t d = 0; d < 3; ++d) {
        near_lo[d] = static_cast<Real>(lo[d]) + reach;
        near_hi[d] =
            shell == Shell::eighth ? std::numeric_limits<Real>::max() : static_cast<Real>(hi[d]) - reach;
    }
    for (std::int32_t slot = 0; slot < particles.local_slots; ++slot) {
        const Real* x = particles.x.data() + layout.address(slot);
        const Real px = x[0], py = x[lanes], pz = x[2 * lanes];
        const bool near = px < near_lo[0] || py < near_lo[1] || pz < near_lo[2] || px >= near_hi[0] ||
                          py >= near_hi[1] || pz >= near_hi[2];
        if (!near || particles.id[static_cast<std::size_t>(slot)] == 0) continue;
        const std::array<Real, 3> p{px, py, pz};
        for (GhostImage<Real>& image : images) {
            Real distance2 = 0;
            for (std::size_t d = 0; d < 3; ++d) {
                if (image.offset[d] == 0) continue;
                const Real edge = static_cast<Real>(image.edge[d]);
                const Real gap = std::max(Real{0}, image.offset[d] > 0 ? p[d] - edge : edge - p[d]);
                distance2 += gap * gap;
            }
            if (distance2 < reach2) image.slots.push_back(slot);
        }
    }
}

template <typename Real>
std::size_t HaloPlan<Real>::atoms_out(const GhostPeer& peer) const {
    std::size_t atoms = 0;
    for (const std::size_t k : peer.images_out)
        atoms += images[k].slots.size();
    return atoms;
}

template <typename Real>
void HaloPlan<Real>::start_counts(std::vector<MPI_Request>& requests) {
    requests.clear();
    for (GhostPeer& peer : peers) {
        peer.counts_in.resize(peer.images_in.size());
        peer.counts_out.clear();
        for (const std::size_t k : peer.images_out)
            peer.counts_out.push_back(static_cast<int>(images[k].slots.size()));
        requests.emplace_back();
        MPI_Irecv(peer.counts_in.data(), static_cast<int>(peer.counts_in.size()), MPI_INT, peer.rank,
                  tag_ghost_counts, decomposition.comm(), &requests.back());
        requests.emplace_back();
        MPI_Isend(peer.counts_out.data(), static_cast<int>(peer.counts_out.size()), MPI_INT, peer.rank,
                  tag_ghost_counts, decomposition.comm(), &requests.back());
    }
}

template <typename Real>
void HaloPlan<Real>::take_counts() {
    for (GhostPeer& peer : peers) {
        std::size_t atoms = 0;
        for (const int count : peer.counts_in)
            atoms += static_cast<std::size_t>(count);
        peer.slots_in.assign(atoms, 0);
    }
}

template <typename Real>
void HaloPlan<Real>::describe(std::vector<std::int32_t>& numbers) const {
    const auto number = [&](std::size_t n) { numbers.push_back(static_cast<std::int32_t>(n)); };
    for (const GhostImage<Real>& image : images) {
        number(image.slots.size());
        numbers.insert(numbers.end(), image.slots.begin(), image.slots.end());
    }
    for (const GhostPeer& peer : peers) {
        number(peer.slots_in.size());
        numbers.insert(numbers.end(), peer.slots_in.begin(), peer.slots_in.end());
    }
    for (const std::vector<GhostCopy>& list : copies)
        for (const GhostCopy& copy : list)
            numbers.push_back(copy.to);
}

template <typename Real>
void HaloPlan<Real>::adopt(std::span<const std::int32_t> numbers) {
    std::size_t at = 0;
    const auto take = [&](std::vector<std::int32_t>& into) {
        const auto count = static_cast<std::size_t>(numbers[at++]);
        into.assign(numbers.begin() + static_cast<std::ptrdiff_t>(at),
                    numbers.begin() + static_cast<std::ptrdiff_t>(at + count));
        at += count;
    };
    for (GhostImage<Real>& image : images)
        take(image.slots);
    for (GhostPeer& peer : peers)
        take(peer.slots_in);
    for (std::size_t c = 0; c < own_images.size(); ++c) {
        const std::vector<std::int32_t>& from = images[own_images[c]].slots;
        copies[c].resize(from.size());
        for (std::size_t i = 0; i < from.size(); ++i)
            copies[c][i] = {from[i], numbers[at++]};
    }
}

template struct HaloPlan<float>;
template struct HaloPlan<double>;

}  // namespace minimd
