// The root sends every rank its block, with a bounded number of sends in flight.
#include "collectives/collectives.h"
#include "collectives/extent.h"
#include "collectives/ops_in_flight.h"
#include "collectives/patterns/pairwise.h"

namespace offpath::collectives {

Schedule scatterv_linear(TeamShape team, std::uint32_t root, std::uint64_t own_bytes,
                         std::span<const std::uint64_t> bytes, std::span<const std::uint64_t> offsets,
                         bool in_place, std::uint32_t credits) {
    schedule::Builder builder(team.rank, team.size);
    if (team.rank != root) {
        const std::uint32_t slot = builder.user_slot(own_bytes);
        if (own_bytes > 0) builder.recv(root, 0, {slot, 0}, own_bytes);
        return builder.finish();
    }
    const std::uint32_t send_slot = builder.user_slot(extent(bytes, offsets));
    const std::uint32_t recv_slot = in_place ? send_slot : builder.user_slot(bytes[root]);
    const Pairwise pairs{team.rank, team.size};
    OpsInFlight sends(builder, credits);
    for (std::uint32_t step = 1; step <= pairs.steps(); ++step)
        if (const std::uint32_t peer = pairs.target(step); bytes[peer] > 0)
            sends.add(builder.send(peer, 0, {send_slot, offsets[peer]}, bytes[peer]));
    if (!in_place && bytes[root] > 0) builder.copy({send_slot, offsets[root]}, {recv_slot, 0}, bytes[root]);
    return builder.finish();
}

}  // namespace offpath::collectives
