#include "collectives/selection.h"

#include "collectives/patterns/equal_blocks.h"
#include "collectives/patterns/parts.h"

#include <algorithm>
#include <bit>

namespace offpath::collectives {
namespace {

// The segment size for a block of `bytes`: about `wanted` bytes.
std::uint64_t segment_for(std::uint64_t bytes, std::uint64_t wanted, const Selection& selection) {
    const std::uint64_t least = std::min(selection.least_segment_bytes, selection.segment_bytes);
    return std::max(std::clamp(wanted, least, selection.segment_bytes), bytes / selection.most_segments);
}

// The result only affects the order in which this rank sends, so ranks may differ.
std::uint32_t credits_for(std::uint64_t block_bytes, const Selection& selection) {
    return block_bytes >= selection.alltoall_single_bytes ? 1 : selection.alltoall_credits;
}

std::uint64_t steps_of(std::uint32_t team_size) {
    return static_cast<std::uint64_t>(std::bit_width(team_size - 1));
}

// The cost of a step that receives data and then reduces them as a whole.
std::uint64_t whole_step(std::uint64_t bytes, const Selection& selection) {
    return bytes + bytes / selection.reduce_share + selection.hop_bytes;
}

// A chain of two ranks has segments too, because receiving them overlaps with reducing them.
std::uint64_t chain_segment_bytes(std::uint32_t team_size, std::uint64_t bytes, const Selection& selection) {
    return reduce_segment_bytes(bcast_segment_bytes(std::max<std::uint32_t>(team_size, 3), bytes, selection));
}

std::uint64_t block_segment_bytes(std::uint64_t block_bytes, const Selection& selection) {
    return reduce_segment_bytes(ring_segment_bytes(block_bytes, selection));
}

std::uint64_t chain_time(std::uint32_t team_size, std::uint64_t bytes, const Selection& selection) {
    const std::uint64_t hops = team_size - 1;
    return bytes + hops * (chain_segment_bytes(team_size, bytes, selection) + selection.hop_bytes);
}

}  // namespace

std::uint64_t reduce_segment_bytes(std::uint64_t segment_bytes) {
    return std::max(segment_bytes / reduce_unit, std::uint64_t{1}) * reduce_unit;
}

ReduceAlgorithm choose_reduce(std::uint32_t team_size, std::uint64_t bytes, const Selection& selection) {
    if (team_size <= 1) return ReduceAlgorithm::binomial;
    const std::uint64_t chain = chain_time(team_size, bytes, selection);
    const std::uint64_t ring = 2 * (bytes - bytes / team_size) + (team_size + 1) * selection.hop_bytes;
    if (bytes <= selection.reduce_whole_bytes &&
        steps_of(team_size) * whole_step(bytes, selection) <= std::min(chain, ring))
        return ReduceAlgorithm::binomial;
    return team_size <= 2 || chain <= ring ? ReduceAlgorithm::chain : ReduceAlgorithm::ring;
}

AllreduceAlgorithm choose_allreduce(std::uint32_t team_size, std::uint64_t bytes,
                                    const Selection& selection) {
    if (team_size <= 1) return AllreduceAlgorithm::recursive_doubling;
    if (bytes > selection.reduce_whole_bytes) return AllreduceAlgorithm::ring;
    const std::uint64_t fold = std::has_single_bit(team_size) ? 0 : 1;
    const std::uint64_t doubling = (steps_of(team_size) + fold) * whole_step(bytes, selection);
    const std::uint64_t ring = 2 * (bytes - bytes / team_size) + 2 * selection.hop_bytes * (team_size - 1);
    return doubling <= ring ? AllreduceAlgorithm::recursive_doubling : AllreduceAlgorithm::ring;
}

ScanAlgorithm choose_scan(std::uint32_t team_size, std::uint64_t bytes, const Selection& selection) {
    if (team_size <= 1) return ScanAlgorithm::recursive_doubling;
    if (bytes > selection.reduce_whole_bytes) return ScanAlgorithm::chain;
    return steps_of(team_size) * whole_step(bytes, selection) <= chain_time(team_size, bytes, selection)
               ? ScanAlgorithm::recursive_doubling
               : ScanAlgorithm::chain;
}

std::uint64_t ring_segment_bytes(std::uint64_t block_bytes, const Selection& selection) {
    return segment_for(block_bytes, block_bytes / 4, selection);
}

std::uint64_t bcast_segment_bytes(std::uint32_t team_size, std::uint64_t bytes, const Selection& selection) {
    constexpr std::uint64_t fill_fraction = 16;
    if (team_size <= 2) return 0;
    return segment_for(bytes, bytes / (fill_fraction * (team_size - 2)), selection);
}

BcastAlgorithm choose_bcast(std::uint32_t team_size, std::uint64_t bytes, const Selection& selection) {
    if (team_size <= 2) return BcastAlgorithm::chain;
    if (bytes < selection.bcast_small_bytes) return BcastAlgorithm::binomial;
    const std::uint64_t hops = team_size - 1, hop = selection.hop_bytes;
    const std::uint64_t binomial = static_cast<std::uint64_t>(std::bit_width(team_size - 1)) * (bytes + hop);
    const std::uint64_t chain =
        bytes + (hops - 1) * bcast_segment_bytes(team_size, bytes, selection) + hops * hop;
    const std::uint64_t ring = 2 * (bytes - bytes / team_size) + (hops + 1) * hop;
    if (chain <= std::min(binomial, ring)) return BcastAlgorithm::chain;
    return ring < binomial ? BcastAlgorithm::ring : BcastAlgorithm::binomial;
}

Schedule alltoall(TeamShape team, std::uint64_t bytes, const Selection& selection) {
    return team.size < selection.alltoall_pairwise_ranks
               ? alltoall_linear(team, bytes, credits_for(bytes, selection))
               : alltoall_pairwise(team, bytes);
}

Schedule alltoallv(TeamShape team, const VectorArgs& args, const Selection& selection) {
    return team.size < selection.alltoall_pairwise_ranks
               ? alltoallv_linear(
                     team, args,
                     credits_for(args.send_bytes.empty() ? 0 : std::ranges::max(args.send_bytes), selection))
               : alltoallv_pairwise(team, args);
}

Schedule allgatherv(TeamShape team, std::span<const std::uint64_t> bytes,
                    std::span<const std::uint64_t> offsets, bool in_place, const Selection& selection) {
    const std::uint64_t largest = bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
    if (largest < selection.allgather_small_bytes || team.size <= selection.allgather_direct_ranks)
        return allgatherv_direct(team, bytes, offsets, in_place, selection.alltoall_credits);
    return allgatherv_ring(team, bytes, offsets, in_place, ring_segment_bytes(largest, selection));
}

Schedule bcast(TeamShape team, std::uint32_t root, std::uint64_t bytes, const Selection& selection) {
    switch (choose_bcast(team.size, bytes, selection)) {
        case BcastAlgorithm::binomial:
            return bcast_binomial(team, root, bytes);
        case BcastAlgorithm::ring:
            return bcast_ring(team, root, bytes);
        case BcastAlgorithm::chain:
            break;
    }
    return bcast_chain(team, root, bytes, bcast_segment_bytes(team.size, bytes, selection));
}

Schedule barrier(TeamShape team) {
    return barrier_dissemination(team);
}

Schedule allreduce(TeamShape team, std::uint64_t bytes, Reducing what, bool in_place,
                   const Selection& selection) {
    if (choose_allreduce(team.size, bytes, selection) == AllreduceAlgorithm::recursive_doubling)
        return allreduce_recursive_doubling(team, bytes, what, in_place);
    return allreduce_ring(team, bytes, what, in_place,
                          block_segment_bytes(Parts{bytes, team.size, reduce_unit}.size(0), selection));
}

Schedule reduce(TeamShape team, std::uint32_t root, std::uint64_t bytes, Reducing what, bool in_place,
                const Selection& selection) {
    switch (choose_reduce(team.size, bytes, selection)) {
        case ReduceAlgorithm::binomial:
            return reduce_binomial(team, root, bytes, what, in_place);
        case ReduceAlgorithm::ring:
            return reduce_ring(team, root, bytes, what, in_place,
                               block_segment_bytes(Parts{bytes, team.size, reduce_unit}.size(0), selection));
        case ReduceAlgorithm::chain:
            break;
    }
    return reduce_chain(team, root, bytes, what, in_place, chain_segment_bytes(team.size, bytes, selection));
}

Schedule reduce_scatter(TeamShape team, std::span<const std::uint64_t> bytes, Reducing what,
                        const Selection& selection) {
    const std::uint64_t largest = std::ranges::max(bytes);
    const std::uint64_t segment = block_segment_bytes(largest, selection);
    return largest < selection.reduce_scatter_small_bytes
               ? reduce_scatter_pairwise(team, bytes, what, segment)
               : reduce_scatter_ring(team, bytes, what, segment);
}

Schedule scan(TeamShape team, std::uint64_t bytes, Reducing what, bool in_place, bool exclusive,
              const Selection& selection) {
    if (choose_scan(team.size, bytes, selection) == ScanAlgorithm::recursive_doubling)
        return scan_recursive_doubling(team, bytes, what, in_place, exclusive);
    return scan_chain(team, bytes, what, in_place, exclusive,
                      chain_segment_bytes(team.size, bytes, selection));
}

Schedule gather(TeamShape team, std::uint32_t root, std::uint64_t bytes, bool in_place,
                const Selection& selection) {
    if (team.size > selection.gather_linear_ranks && bytes <= selection.gather_tree_bytes)
        return gather_binomial(team, root, bytes, in_place);
    const EqualBlocks blocks(team.size, bytes);
    return gatherv(team, root, bytes, blocks.bytes, blocks.offsets, in_place, selection);
}

Schedule scatter(TeamShape team, std::uint32_t root, std::uint64_t bytes, bool in_place,
                 const Selection& selection) {
    if (team.size > selection.gather_linear_ranks && bytes <= selection.gather_tree_bytes)
        return scatter_binomial(team, root, bytes, in_place);
    const EqualBlocks blocks(team.size, bytes);
    return scatterv(team, root, bytes, blocks.bytes, blocks.offsets, in_place, selection);
}

Schedule gatherv(TeamShape team, std::uint32_t root, std::uint64_t own_bytes,
                 std::span<const std::uint64_t> bytes, std::span<const std::uint64_t> offsets, bool in_place,
                 const Selection& selection) {
    return gatherv_linear(team, root, own_bytes, bytes, offsets, in_place, selection.gather_credits);
}

Schedule scatterv(TeamShape team, std::uint32_t root, std::uint64_t own_bytes,
                  std::span<const std::uint64_t> bytes, std::span<const std::uint64_t> offsets, bool in_place,
                  const Selection& selection) {
    return scatterv_linear(team, root, own_bytes, bytes, offsets, in_place, selection.gather_credits);
}

Schedule neighbor_alltoallv(TeamShape team, const NeighborArgs& args, const Selection& selection) {
    const std::uint64_t largest = args.send_bytes.empty() ? 0 : std::ranges::max(args.send_bytes);
    return neighbor_alltoallv_linear(team, args, credits_for(largest, selection));
}

}  // namespace offpath::collectives
