// Step k exchanges with rank + k and rank - k; the next step starts when both are done. Each rank has two
// messages in flight and no receiver has two senders. In return, each step waits for the slower of the two.
#include "collectives/blocks.h"
#include "collectives/patterns/pairwise.h"

namespace offpath::collectives {

Schedule alltoallv_pairwise(TeamShape team, const VectorArgs& args) {
    schedule::Builder builder(team.rank, team.size);
    const ExchangeSlots slots(builder, args);
    const Pairwise pairs{team.rank, team.size};

    std::vector<schedule::OpId> last, current;
    for (std::uint32_t step = 1; step <= pairs.steps(); ++step) {
        const std::uint32_t source = pairs.source(step), target = pairs.target(step);
        current.clear();
        if (args.recv_bytes[source] > 0)
            current.push_back(
                builder.recv(source, 0, {slots.recv, args.recv_offsets[source]}, args.recv_bytes[source]));
        if (args.send_bytes[target] > 0)
            current.push_back(
                builder.send(target, 0, {slots.send, args.send_offsets[target]}, args.send_bytes[target]));
        for (schedule::OpId after : current)
            for (schedule::OpId before : last)
                builder.depend(after, before);
        if (!current.empty()) last = current;
    }
    slots.copy_own(builder, args, team.rank);
    return builder.finish();
}

}  // namespace offpath::collectives
