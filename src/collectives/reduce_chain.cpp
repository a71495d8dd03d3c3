// The ranks form a chain that ends at the root. Segments run along it, and each rank adds its operands.
// Whatever the team's size, large data move at the rate of one link, once the first segment has reached the
// root.
#include "collectives/collectives.h"
#include "collectives/ops_in_flight.h"
#include "collectives/patterns/ring.h"
#include "collectives/patterns/segments.h"
#include "collectives/scratch.h"

namespace offpath::collectives {

Schedule reduce_chain(TeamShape team, std::uint32_t root, std::uint64_t bytes, Reducing what, bool in_place,
                      std::uint64_t segment_bytes) {
    schedule::Builder builder(team.rank, team.size);
    const Ring ring{team.rank, team.size};
    const bool is_root = team.rank == root, is_first = ring.previous() == root;
    const std::uint32_t own_slot = builder.user_slot(bytes);
    const std::uint32_t recv_slot = !is_root || in_place ? own_slot : builder.user_slot(bytes);
    if (team.size == 1) {
        if (!in_place && bytes > 0) builder.copy({own_slot, 0}, {recv_slot, 0}, bytes);
        return builder.finish();
    }
    const Segments segments{bytes, segment_bytes};
    OpsInFlight sends(builder, pipeline_sends);
    if (is_first) {
        for (std::uint64_t i = 0; i < segments.count(); ++i)
            sends.add(builder.send(ring.next(), i, {own_slot, segments.offset(i)}, segments.size(i)));
        return builder.finish();
    }
    Scratch scratch(builder, std::min<std::uint64_t>(segments.count(), pipeline_recvs),
                    std::min(segments.step(), bytes));
    for (std::uint64_t i = 0; i < segments.count(); ++i) {
        const std::uint64_t into = i % pipeline_recvs, size = segments.size(i);
        const schedule::BufferRef own{own_slot, segments.offset(i)};
        const schedule::OpId recv = builder.recv(ring.previous(), i, scratch.at(into), size);
        scratch.fill(into, recv);
        const schedule::OpId reduce = builder.reduce(what.type, what.reduction, own, scratch.at(into), size);
        scratch.use(into, recv, reduce);
        scratch.use(into, reduce,
                    is_root ? builder.copy(scratch.at(into), {recv_slot, own.offset}, size)
                            : builder.send(ring.next(), i, scratch.at(into), size));
    }
    return builder.finish();
}

}  // namespace offpath::collectives
