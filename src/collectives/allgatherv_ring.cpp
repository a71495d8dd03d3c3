// Blocks travel around the ring, cut into segments. A rank passes on a segment as soon as it has arrived,
// while the next one is still arriving. So both directions of every link stay busy, even between blocks.
#include "collectives/blocks.h"
#include "collectives/ops_in_flight.h"
#include "collectives/patterns/ring.h"
#include "collectives/patterns/segments.h"

namespace offpath::collectives {

Schedule allgatherv_ring(TeamShape team, std::span<const std::uint64_t> bytes,
                         std::span<const std::uint64_t> offsets, bool in_place, std::uint64_t segment_bytes) {
    schedule::Builder builder(team.rank, team.size);
    const AllgatherSlots slots(builder, team.rank, bytes, offsets, in_place);
    const std::uint32_t recv_slot = slots.place.slot;
    const Ring ring{team.rank, team.size};

    OpsInFlight sends(builder, pipeline_sends), recvs(builder, pipeline_recvs);
    // Both ends of a link count its segments in the same order; the counts are the tags.
    std::uint64_t send_tag = 0, recv_tag = 0;
    std::vector<schedule::OpId> arrived;  // the receives of the block that this step sends
    for (std::uint32_t step = 0; step < ring.steps(); ++step) {
        const std::uint32_t outgoing = ring.sent_block(step), incoming = ring.received_block(step);
        const Segments in{bytes[incoming], segment_bytes}, out{bytes[outgoing], segment_bytes};
        std::vector<schedule::OpId> arriving;
        for (std::uint64_t i = 0; i < in.count(); ++i) {
            arriving.push_back(builder.recv(ring.previous(), recv_tag++,
                                            {recv_slot, offsets[incoming] + in.offset(i)}, in.size(i)));
            recvs.add(arriving.back());
        }
        const schedule::BufferRef block =
            step == 0 ? slots.own : schedule::BufferRef{recv_slot, offsets[outgoing]};
        for (std::uint64_t i = 0; i < out.count(); ++i) {
            const schedule::OpId send = builder.send(ring.next(), send_tag++,
                                                     {block.slot, block.offset + out.offset(i)}, out.size(i));
            if (step > 0) builder.depend(send, arrived[i]);
            sends.add(send);
        }
        arrived = std::move(arriving);
    }
    slots.copy_own(builder);
    return builder.finish();
}

}  // namespace offpath::collectives
