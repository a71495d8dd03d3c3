// Each edge carries one message. All receives are posted at once, and a bounded number of sends is in flight.
#include "collectives/blocks.h"
#include "collectives/ops_in_flight.h"

#include <unordered_map>

namespace offpath::collectives {

Schedule neighbor_alltoallv_linear(TeamShape team, const NeighborArgs& args, std::uint32_t credits) {
    schedule::Builder builder(team.rank, team.size);
    const ExchangeSlots slots(builder, args);
    // The k-th edge from a rank matches the peer's k-th edge for it, so k is the tag. Edges of 0 bytes count
    // too.
    std::unordered_map<std::uint32_t, std::uint64_t> edges;
    std::vector<schedule::BufferRef> from_here;
    for (std::size_t i = 0; i < args.sources.size(); ++i) {
        const std::uint32_t peer = args.sources[i];
        const std::uint64_t edge = edges[peer]++, bytes = args.recv_bytes[i];
        const schedule::BufferRef place{slots.recv, args.recv_offsets[i]};
        if (peer == team.rank)
            from_here.push_back(place);
        else if (bytes > 0)
            builder.recv(peer, edge, place, bytes);
    }
    edges.clear();
    OpsInFlight sends(builder, credits);
    for (std::size_t i = 0; i < args.destinations.size(); ++i) {
        const std::uint32_t peer = args.destinations[i];
        const std::uint64_t edge = edges[peer]++, bytes = args.send_bytes[i];
        const schedule::BufferRef place{slots.send, args.send_offsets[i]};
        if (bytes == 0) continue;
        if (peer == team.rank)
            builder.copy(place, from_here.at(edge), bytes);
        else
            sends.add(builder.send(peer, edge, place, bytes));
    }
    return builder.finish();
}

}  // namespace offpath::collectives
