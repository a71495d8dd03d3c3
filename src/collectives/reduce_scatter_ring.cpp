// Segments travel around the ring, and each rank adds its operands. A rank receives from one rank and sends
// to one.
#include "collectives/collectives.h"
#include "collectives/ring_reduction.h"

#include <numeric>

namespace offpath::collectives {

Schedule reduce_scatter_ring(TeamShape team, std::span<const std::uint64_t> bytes, Reducing what,
                             std::uint64_t segment_bytes) {
    schedule::Builder builder(team.rank, team.size);
    std::vector<std::uint64_t> offsets(team.size);
    std::exclusive_scan(bytes.begin(), bytes.end(), offsets.begin(), std::uint64_t{0});
    const schedule::BufferRef own{builder.user_slot(offsets.back() + bytes.back()), 0};
    const std::uint32_t recv_slot = builder.user_slot(bytes[team.rank]);
    if (std::ranges::max(bytes) == 0) return builder.finish();
    if (team.size == 1) {
        builder.copy(own, {recv_slot, 0}, bytes[0]);
        return builder.finish();
    }
    RingReduction reduction(builder, team, own, bytes, offsets, what, segment_bytes, team.size - 1);
    for (std::uint64_t round = 0; round < reduction.rounds(); ++round) {
        const std::optional<schedule::OpId> reduced = reduction.reduce_scatter(round);
        if (!reduced) continue;
        const std::uint64_t here = reduction.buffer(round, team.size - 2);
        reduction.scratch().use(
            here, *reduced,
            builder.copy(reduction.scratch().at(here), {recv_slot, reduction.offset(round)},
                         reduction.size(team.rank, round)));
    }
    return builder.finish();
}

}  // namespace offpath::collectives
