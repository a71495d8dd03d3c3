// Every rank sends its block to all others, in the order rank + 1, rank + 2, ..., with a bounded number of
// sends in flight. Every byte takes one hop, and every rank sends n - 1 messages.
#include "collectives/blocks.h"
#include "collectives/ops_in_flight.h"
#include "collectives/patterns/pairwise.h"

namespace offpath::collectives {

Schedule allgatherv_direct(TeamShape team, std::span<const std::uint64_t> bytes,
                           std::span<const std::uint64_t> offsets, bool in_place, std::uint32_t credits) {
    schedule::Builder builder(team.rank, team.size);
    const AllgatherSlots slots(builder, team.rank, bytes, offsets, in_place);
    const std::uint32_t recv_slot = slots.place.slot;
    const Pairwise pairs{team.rank, team.size};

    for (std::uint32_t step = 1; step <= pairs.steps(); ++step)
        if (const std::uint32_t peer = pairs.source(step); bytes[peer] > 0)
            builder.recv(peer, 0, {recv_slot, offsets[peer]}, bytes[peer]);

    OpsInFlight sends(builder, credits);
    if (bytes[team.rank] > 0)
        for (std::uint32_t step = 1; step <= pairs.steps(); ++step)
            sends.add(builder.send(pairs.target(step), 0, slots.own, bytes[team.rank]));

    slots.copy_own(builder);
    return builder.finish();
}

}  // namespace offpath::collectives
