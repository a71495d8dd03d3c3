// A scatter, then an allgather around the ring. The root sends the i-th part of the message to the i-th rank
// after it. Then the parts travel around the ring up to the root, which has them all. Twice as many bytes as
// in the chain pass the root's link. But the parts get smaller as the team grows, so a long ring fills
// faster. R. Thakur, R. Rabenseifner, W. Gropp, Optimization of collective communication operations in MPICH
// (2005), section 4.3.
#include "collectives/collectives.h"
#include "collectives/ops_in_flight.h"
#include "collectives/patterns/parts.h"
#include "collectives/patterns/ring.h"

#include <optional>

namespace offpath::collectives {
Schedule bcast_ring(TeamShape team, std::uint32_t root, std::uint64_t bytes) {
    schedule::Builder builder(team.rank, team.size);
    const std::uint32_t slot = builder.user_slot(bytes);
    const Parts parts{bytes, team.size};
    const Ring ranks{team.rank, team.size};
    // The same ring, counted from the root, so that part i starts at place i. A message's tag is its part.
    const Ring ring{(team.rank + (team.size - root)) % team.size, team.size};
    const bool is_root = team.rank == root, is_last = ranks.next() == root;

    OpsInFlight sends(builder, pipeline_sends), recvs(builder, pipeline_recvs);
    std::optional<schedule::OpId> arrival;
    if (is_root) {
        for (std::uint32_t place = 1; place < team.size && parts.size(place) > 0; ++place)
            sends.add(builder.send((root + place) % team.size, place, {slot, parts.offset(place)},
                                   parts.size(place)));
    } else if (const std::uint32_t home = ring.rank; parts.size(home) > 0) {
        arrival = builder.recv(root, home, {slot, parts.offset(home)}, parts.size(home));
    }
    for (std::uint32_t step = 0; step < ring.steps(); ++step) {
        std::optional<schedule::OpId> next_arrival;
        if (const std::uint32_t part = ring.received_block(step); !is_root && parts.size(part) > 0) {
            next_arrival = builder.recv(ranks.previous(), part, {slot, parts.offset(part)}, parts.size(part));
            recvs.add(*next_arrival);
        }
        if (const std::uint32_t part = ring.sent_block(step); !is_last && parts.size(part) > 0) {
            const schedule::OpId send =
                builder.send(ranks.next(), part, {slot, parts.offset(part)}, parts.size(part));
            if (arrival) builder.depend(send, *arrival);
            sends.add(send);
        }
        arrival = next_arrival;
    }
    return builder.finish();
}

}  // namespace offpath::collectives
