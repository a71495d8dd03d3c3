// Every rank sends its block to the root, which accepts a bounded number of them at once.
#include "collectives/collectives.h"
#include "collectives/extent.h"
#include "collectives/ops_in_flight.h"
#include "collectives/patterns/pairwise.h"

namespace offpath::collectives {

Schedule gatherv_linear(TeamShape team, std::uint32_t root, std::uint64_t own_bytes,
                        std::span<const std::uint64_t> bytes, std::span<const std::uint64_t> offsets,
                        bool in_place, std::uint32_t credits) {
    schedule::Builder builder(team.rank, team.size);
    if (team.rank != root) {
        const std::uint32_t slot = builder.user_slot(own_bytes);
        if (own_bytes > 0) builder.send(root, 0, {slot, 0}, own_bytes);
        return builder.finish();
    }
    const std::uint32_t send_slot = in_place ? 0 : builder.user_slot(bytes[root]);
    const std::uint32_t recv_slot = builder.user_slot(extent(bytes, offsets));
    const Pairwise pairs{team.rank, team.size};
    OpsInFlight recvs(builder, credits);
    for (std::uint32_t step = 1; step <= pairs.steps(); ++step)
        if (const std::uint32_t peer = pairs.target(step); bytes[peer] > 0)
            recvs.add(builder.recv(peer, 0, {recv_slot, offsets[peer]}, bytes[peer]));
    if (!in_place && bytes[root] > 0) builder.copy({send_slot, 0}, {recv_slot, offsets[root]}, bytes[root]);
    return builder.finish();
}

}  // namespace offpath::collectives
