#include "collectives/selection.h"

#include <algorithm>
#include <bit>

namespace offpath::collectives {
namespace {

// A segment of about `wanted` bytes for a block of `bytes`.
std::uint64_t segment_for(std::uint64_t bytes, std::uint64_t wanted, const Selection& selection) {
    const std::uint64_t least = std::min(selection.least_segment_bytes, selection.segment_bytes);
    return std::max(std::clamp(wanted, least, selection.segment_bytes), bytes / selection.most_segments);
}

// Only this rank's order of sending hangs on it, so ranks may differ.
std::uint32_t credits_for(std::uint64_t block_bytes, const Selection& selection) {
    return block_bytes >= selection.alltoall_single_bytes ? 1 : selection.alltoall_credits;
}

}  // namespace

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

}  // namespace offpath::collectives
