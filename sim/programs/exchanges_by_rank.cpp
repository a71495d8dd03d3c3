#include "sim/programs/exchanges_by_rank.h"

#include "collectives/blocks.h"

#include <vector>

namespace offpath::sim {

using collectives::TeamShape;

schedule::Schedule alltoallv_by_rank(TeamShape team, const collectives::VectorArgs& args) {
    schedule::Builder builder(team.rank, team.size);
    const collectives::ExchangeSlots slots(builder, args);
    for (std::uint32_t peer = 0; peer < team.size; ++peer) {
        if (peer == team.rank) continue;
        if (args.recv_bytes[peer] > 0)
            builder.recv(peer, 0, {slots.recv, args.recv_offsets[peer]}, args.recv_bytes[peer]);
        if (args.send_bytes[peer] > 0)
            builder.send(peer, 0, {slots.send, args.send_offsets[peer]}, args.send_bytes[peer]);
    }
    slots.copy_own(builder, args, team.rank);
    return builder.finish();
}

schedule::Schedule allgather_by_rank(TeamShape team, std::uint64_t bytes) {
    schedule::Builder builder(team.rank, team.size);
    const std::vector<std::uint64_t> sizes(team.size, bytes);
    std::vector<std::uint64_t> offsets(team.size);
    for (std::uint32_t rank = 0; rank < team.size; ++rank)
        offsets[rank] = rank * bytes;
    const collectives::AllgatherSlots slots(builder, team.rank, sizes, offsets, false);
    for (std::uint32_t peer = 0; peer < team.size; ++peer) {
        if (peer == team.rank || bytes == 0) continue;
        builder.recv(peer, 0, {slots.place.slot, offsets[peer]}, bytes);
        builder.send(peer, 0, slots.own, bytes);
    }
    slots.copy_own(builder);
    return builder.finish();
}

}  // namespace offpath::sim
