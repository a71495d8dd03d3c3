// All receives are posted at once; the sends go out in the order rank + 1, rank + 2, ..., with a bounded
// number in flight. Every rank starts with a different peer, so no receiver is the target of all, and the
// links of every rank stay busy in both directions.
#include "collectives/blocks.h"
#include "collectives/ops_in_flight.h"
#include "collectives/patterns/pairwise.h"

namespace offpath::collectives {

Schedule alltoallv_linear(TeamShape team, const VectorArgs& args, std::uint32_t credits) {
    schedule::Builder builder(team.rank, team.size);
    const ExchangeSlots slots(builder, args);
    const Pairwise pairs{team.rank, team.size};

    for (std::uint32_t step = 1; step <= pairs.steps(); ++step)
        if (const std::uint32_t peer = pairs.source(step); args.recv_bytes[peer] > 0)
            builder.recv(peer, 0, {slots.recv, args.recv_offsets[peer]}, args.recv_bytes[peer]);

    OpsInFlight sends(builder, credits);
    for (std::uint32_t step = 1; step <= pairs.steps(); ++step)
        if (const std::uint32_t peer = pairs.target(step); args.send_bytes[peer] > 0)
            sends.add(builder.send(peer, 0, {slots.send, args.send_offsets[peer]}, args.send_bytes[peer]));

    // The copy is last in the order of ops, so it runs while the links are busy.
    slots.copy_own(builder, args, team.rank);
    return builder.finish();
}

}  // namespace offpath::collectives
