// Every rank sends its block to all others, in the order rank + 1, rank + 2, ..., with a bounded number of
// sends in flight. Every byte takes one hop, and every rank sends n - 1 messages.
#include "collectives/collectives.h"
#include "collectives/extent.h"
#include "collectives/patterns/pairwise.h"
#include "collectives/window.h"

namespace offpath::collectives {

Schedule allgatherv_direct(TeamShape team, std::span<const std::uint64_t> bytes,
                           std::span<const std::uint64_t> offsets, bool in_place, std::uint32_t credits) {
    schedule::Builder builder(team.rank, team.size);
    const schedule::BufferRef own = in_place ? schedule::BufferRef{0, offsets[team.rank]}
                                             : schedule::BufferRef{builder.user_slot(bytes[team.rank]), 0};
    const std::uint32_t recv_slot = builder.user_slot(extent(bytes, offsets));
    const Pairwise pairs{team.rank, team.size};

    for (std::uint32_t step = 1; step <= pairs.steps(); ++step)
        if (const std::uint32_t peer = pairs.source(step); bytes[peer] > 0)
            builder.recv(peer, 0, {recv_slot, offsets[peer]}, bytes[peer]);

    Window sends(builder, credits);
    if (bytes[team.rank] > 0)
        for (std::uint32_t step = 1; step <= pairs.steps(); ++step)
            sends.add(builder.send(pairs.target(step), 0, own, bytes[team.rank]));

    if (!in_place && bytes[team.rank] > 0)
        builder.copy(own, {recv_slot, offsets[team.rank]}, bytes[team.rank]);
    return builder.finish();
}

}  // namespace offpath::collectives
