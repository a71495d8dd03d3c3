// A reduce-scatter around the ring, then an allgather around the ring. A rank sends and receives 2 (n - 1) /
// n of the data, which is the minimum, and reduces (n - 1) / n of it. Segments that the second half passes on
// stay in scratch memory meanwhile, so they need not be read back from the host. P. Patarasuk, X. Yuan,
// Bandwidth optimal all-reduce algorithms for clusters of workstations (2009).
#include "collectives/collectives.h"
#include "collectives/patterns/parts.h"
#include "collectives/ring_reduction.h"

namespace offpath::collectives {

Schedule allreduce_ring(TeamShape team, std::uint64_t bytes, Reducing what, bool in_place,
                        std::uint64_t segment_bytes) {
    schedule::Builder builder(team.rank, team.size);
    const schedule::BufferRef own{builder.user_slot(bytes), 0};
    const std::uint32_t recv_slot = in_place ? own.slot : builder.user_slot(bytes);
    if (bytes == 0) return builder.finish();
    if (team.size == 1) {
        if (!in_place) builder.copy(own, {recv_slot, 0}, bytes);
        return builder.finish();
    }
    const Parts parts{bytes, team.size, reduce_unit};
    const std::vector<std::uint64_t> sizes = parts.sizes(), offsets = parts.offsets();
    const std::uint32_t steps = team.size - 1;
    RingReduction reduction(builder, team, own, sizes, offsets, what, segment_bytes,
                            std::uint64_t{2} * steps);
    const Ring& ring = reduction.ring();
    Scratch& scratch = reduction.scratch();

    for (std::uint64_t round = 0; round < reduction.rounds(); ++round) {
        schedule::OpId arrived = reduction.reduce_scatter(round).value_or(0);
        const auto result = [&](std::uint32_t block) {
            return schedule::BufferRef{recv_slot, offsets[block] + reduction.offset(round)};
        };
        for (std::uint32_t step = 0; step < steps; ++step) {
            const std::uint64_t here = reduction.buffer(round, steps - 1 + step);
            const std::uint64_t tag = reduction.tag(round, steps + step);
            if (const std::uint32_t block = ring.sent_block(step); reduction.has(block, round)) {
                const std::uint64_t size = reduction.size(block, round);
                scratch.use(here, arrived, builder.send(ring.next(), tag, scratch.at(here), size));
                scratch.use(here, arrived, builder.copy(scratch.at(here), result(block), size));
            }
            const std::uint32_t block = ring.received_block(step);
            if (!reduction.has(block, round)) continue;
            if (step + 1 < steps) {
                const std::uint64_t into = reduction.buffer(round, steps + step);
                arrived = builder.recv(ring.previous(), tag, scratch.at(into), reduction.size(block, round));
                scratch.fill(into, arrived);
            } else {
                const schedule::OpId last =
                    builder.recv(ring.previous(), tag, result(block), reduction.size(block, round));
                builder.depend(last, *reduction.reader(block));
            }
        }
    }
    return builder.finish();
}

}  // namespace offpath::collectives
