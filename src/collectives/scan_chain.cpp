// Segments run from rank to rank. Each rank adds its operands and keeps a copy. This suits large data.
#include "collectives/collectives.h"
#include "collectives/ops_in_flight.h"
#include "collectives/patterns/segments.h"
#include "collectives/scratch.h"

namespace offpath::collectives {

Schedule scan_chain(TeamShape team, std::uint64_t bytes, Reducing what, bool in_place, bool exclusive,
                    std::uint64_t segment_bytes) {
    schedule::Builder builder(team.rank, team.size);
    const std::uint32_t own_slot = builder.user_slot(bytes);
    const std::uint32_t recv_slot = in_place ? own_slot : builder.user_slot(bytes);
    const Segments segments{bytes, segment_bytes};
    const bool is_last = team.rank + 1 == team.size;
    if (team.rank == 0) {
        OpsInFlight sends(builder, pipeline_sends);
        for (std::uint64_t i = 0; !is_last && i < segments.count(); ++i)
            sends.add(builder.send(1, i, {own_slot, segments.offset(i)}, segments.size(i)));
        if (!exclusive && !in_place && bytes > 0) builder.copy({own_slot, 0}, {recv_slot, 0}, bytes);
        return builder.finish();
    }
    const std::uint64_t buffers = std::min<std::uint64_t>(segments.count(), pipeline_recvs);
    const std::uint64_t buffer_bytes = std::min(segments.step(), bytes);
    Scratch before(builder, buffers, buffer_bytes), all(builder, exclusive ? buffers : 0, buffer_bytes);
    for (std::uint64_t i = 0; i < segments.count(); ++i) {
        const std::uint64_t at = i % pipeline_recvs, size = segments.size(i);
        const schedule::BufferRef own{own_slot, segments.offset(i)}, result{recv_slot, own.offset};
        const schedule::OpId recv = builder.recv(team.rank - 1, i, before.at(at), size);
        before.fill(at, recv);
        if (!exclusive) {
            const schedule::OpId reduce = builder.reduce(what.type, what.reduction, own, before.at(at), size);
            before.use(at, recv, reduce);
            if (!is_last) before.use(at, reduce, builder.send(team.rank + 1, i, before.at(at), size));
            before.use(at, reduce, builder.copy(before.at(at), result, size));
            continue;
        }
        const schedule::OpId keep = builder.copy(before.at(at), result, size);
        before.use(at, recv, keep);
        if (is_last) continue;
        const schedule::OpId copy = builder.copy(before.at(at), all.at(at), size);
        all.fill(at, copy);
        before.use(at, recv, copy);
        const schedule::OpId reduce = builder.reduce(what.type, what.reduction, own, all.at(at), size);
        all.use(at, copy, reduce);
        if (in_place) builder.depend(keep, reduce);
        all.use(at, reduce, builder.send(team.rank + 1, i, all.at(at), size));
    }
    return builder.finish();
}

}  // namespace offpath::collectives
