// The ranks form a chain behind the root. The message is cut into segments, and a rank passes on each as soon
// as it has arrived. Whatever the team's size, a large message moves at the rate of one link, once its first
// segment has reached the end.
#include "collectives/collectives.h"
#include "collectives/ops_in_flight.h"
#include "collectives/patterns/ring.h"
#include "collectives/patterns/segments.h"

namespace offpath::collectives {

Schedule bcast_chain(TeamShape team, std::uint32_t root, std::uint64_t bytes, std::uint64_t segment_bytes) {
    schedule::Builder builder(team.rank, team.size);
    const std::uint32_t slot = builder.user_slot(bytes);
    const Ring ring{team.rank, team.size};
    const bool is_first = team.rank == root, is_last = ring.next() == root;

    OpsInFlight sends(builder, pipeline_sends), recvs(builder, pipeline_recvs);
    const Segments segments{bytes, segment_bytes};
    for (std::uint64_t i = 0; i < segments.count(); ++i) {
        const schedule::BufferRef segment{slot, segments.offset(i)};
        schedule::OpId arrival = 0;
        if (!is_first) {
            arrival = builder.recv(ring.previous(), i, segment, segments.size(i));
            recvs.add(arrival);
        }
        if (!is_last) {
            const schedule::OpId send = builder.send(ring.next(), i, segment, segments.size(i));
            if (!is_first) builder.depend(send, arrival);
            sends.add(send);
        }
    }
    return builder.finish();
}

}  // namespace offpath::collectives
