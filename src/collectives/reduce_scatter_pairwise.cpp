// Step k sends rank + k the operands of its block, and receives operands of this rank's block from rank - k.
// Every byte takes one hop. The received operands are reduced in the order of the steps, one segment at a
// time.
#include "collectives/collectives.h"
#include "collectives/ops_in_flight.h"
#include "collectives/patterns/pairwise.h"
#include "collectives/patterns/segments.h"
#include "collectives/scratch.h"

#include <numeric>

namespace offpath::collectives {

Schedule reduce_scatter_pairwise(TeamShape team, std::span<const std::uint64_t> bytes, Reducing what,
                                 std::uint64_t segment_bytes) {
    schedule::Builder builder(team.rank, team.size);
    std::vector<std::uint64_t> offsets(team.size);
    std::exclusive_scan(bytes.begin(), bytes.end(), offsets.begin(), std::uint64_t{0});
    const std::uint32_t send_slot = builder.user_slot(offsets.back() + bytes.back());
    const std::uint32_t recv_slot = builder.user_slot(bytes[team.rank]);
    const Pairwise pairs{team.rank, team.size};
    if (team.size == 1) {
        if (bytes[0] > 0) builder.copy({send_slot, 0}, {recv_slot, 0}, bytes[0]);
        return builder.finish();
    }

    // Both ends use this order: segment by segment, and for each segment one peer after the other.
    const Segments own{bytes[team.rank], segment_bytes};
    const std::uint64_t buffer_bytes = std::min(own.step(), own.bytes);
    constexpr std::uint64_t sum_buffers = 4;
    Scratch arrivals(builder, pipeline_recvs, buffer_bytes), sums(builder, sum_buffers, buffer_bytes);
    OpsInFlight sends(builder, pipeline_sends);
    std::uint64_t rounds = 0, arrived = 0;
    for (std::uint64_t block : bytes)
        rounds = std::max(rounds, Segments{block, segment_bytes}.count());
    for (std::uint64_t round = 0; round < rounds; ++round) {
        const std::uint64_t sum = round % sum_buffers, size = round < own.count() ? own.size(round) : 0;
        schedule::OpId summed = 0;
        for (std::uint32_t step = 1; step <= pairs.steps(); ++step) {
            if (size > 0 && step == 1) {
                const schedule::OpId recv = builder.recv(pairs.source(step), round, sums.at(sum), size);
                sums.fill(sum, recv);
                summed =
                    builder.reduce(what.type, what.reduction,
                                   {send_slot, offsets[team.rank] + own.offset(round)}, sums.at(sum), size);
                sums.use(sum, recv, summed);
            } else if (size > 0) {
                const std::uint64_t into = arrived++ % pipeline_recvs;
                const schedule::OpId recv = builder.recv(pairs.source(step), round, arrivals.at(into), size);
                arrivals.fill(into, recv);
                const schedule::OpId reduce =
                    builder.reduce(what.type, what.reduction, arrivals.at(into), sums.at(sum), size);
                arrivals.use(into, recv, reduce);
                sums.use(sum, summed, reduce);
                summed = reduce;
            }
            const std::uint32_t target = pairs.target(step);
            if (const Segments out{bytes[target], segment_bytes}; round < out.count())
                sends.add(builder.send(target, round, {send_slot, offsets[target] + out.offset(round)},
                                       out.size(round)));
        }
        if (size > 0) sums.use(sum, summed, builder.copy(sums.at(sum), {recv_slot, own.offset(round)}, size));
    }
    return builder.finish();
}

}  // namespace offpath::collectives
