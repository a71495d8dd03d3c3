// A reduce-scatter around the ring. Then every rank sends its block to the root. Twice as many bytes as in
// the chain pass the root's link. But the blocks get smaller as the team grows, so a long ring fills faster.
// R. Thakur, R. Rabenseifner, W. Gropp, Optimization of collective communication operations in MPICH (2005),
// section 4.4.
#include "collectives/collectives.h"
#include "collectives/patterns/parts.h"
#include "collectives/ring_reduction.h"

namespace offpath::collectives {

Schedule reduce_ring(TeamShape team, std::uint32_t root, std::uint64_t bytes, Reducing what, bool in_place,
                     std::uint64_t segment_bytes) {
    schedule::Builder builder(team.rank, team.size);
    const bool is_root = team.rank == root;
    const schedule::BufferRef own{builder.user_slot(bytes), 0};
    const std::uint32_t recv_slot = !is_root || in_place ? own.slot : builder.user_slot(bytes);
    if (bytes == 0) return builder.finish();
    if (team.size == 1) {
        if (!in_place) builder.copy(own, {recv_slot, 0}, bytes);
        return builder.finish();
    }
    const Parts parts{bytes, team.size, reduce_unit};
    const std::vector<std::uint64_t> sizes = parts.sizes(), offsets = parts.offsets();
    const std::uint32_t steps = team.size - 1;
    RingReduction reduction(builder, team, own, sizes, offsets, what, segment_bytes, steps + 1);
    Scratch& scratch = reduction.scratch();
    OpsInFlight recvs(builder, pipeline_recvs);

    for (std::uint64_t round = 0; round < reduction.rounds(); ++round) {
        const std::optional<schedule::OpId> reduced = reduction.reduce_scatter(round);
        const std::uint64_t tag = reduction.tag(round, steps), here = reduction.buffer(round, steps - 1);
        const auto result = [&](std::uint32_t block) {
            return schedule::BufferRef{recv_slot, offsets[block] + reduction.offset(round)};
        };
        if (reduced) {
            const std::uint64_t size = reduction.size(team.rank, round);
            scratch.use(here, *reduced,
                        is_root ? builder.copy(scratch.at(here), result(root), size)
                                : builder.send(root, tag, scratch.at(here), size));
        }
        for (std::uint32_t i = 1; is_root && i < team.size; ++i) {
            const std::uint32_t block = (root + i) % team.size;
            if (!reduction.has(block, round)) continue;
            const schedule::OpId recv = builder.recv(block, tag, result(block), reduction.size(block, round));
            builder.depend(recv, *reduction.reader(block));
            recvs.add(recv);
        }
    }
    return builder.finish();
}

}  // namespace offpath::collectives
