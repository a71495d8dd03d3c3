// Which algorithm serves which collective, by size and team: the one place to look and to change. Pure; all
// ranks get the same answer for arguments that agree. What only one rank knows (its counts in an alltoallv)
// has no influence.
#pragma once

#include "collectives/collectives.h"

namespace offpath::collectives {

struct Selection {
    std::uint32_t alltoall_credits = 4;  // sends at once, of small blocks
    std::uint64_t alltoall_single_bytes =
        256 << 10;  // from here on one at a time, so that few senders meet at one receiver
    std::uint32_t alltoall_pairwise_ranks = 64;  // from here on: pairwise, which keeps senders in step
    // Pipelined chain and ring: the segment, and the smallest that is taken to fill a chain faster. Below 64
    // KiB the transport sends without asking the receiver, so that segments leave in order and proxies that
    // share a core wait less for each other: in a 4-node lab at 1 Gbit/s, 48 KiB beat 128 and 256 KiB in each
    // of three alternating rounds (4 MiB bcast) and in two (4 MiB allgather).
    std::uint64_t segment_bytes = 48 << 10;
    std::uint64_t least_segment_bytes = 32 << 10;
    std::uint64_t most_segments = 2048;              // of one block; those of larger blocks are longer
    std::uint64_t bcast_small_bytes = 64 << 10;      // below: binomial
    std::uint64_t allgather_small_bytes = 32 << 10;  // below, for the largest block: direct
    // Up to here: direct, without segments, since nobody forwards. The ring keeps every link at its rate;
    // direct has several senders meet at one receiver.
    std::uint32_t allgather_direct_ranks = 2;
    std::uint64_t hop_bytes = 16 << 10;  // what a link carries in the time that a hop costs
};

enum class BcastAlgorithm : std::uint8_t { binomial, chain, ring };

Schedule alltoall(TeamShape team, std::uint64_t bytes, const Selection& selection = {});
Schedule alltoallv(TeamShape team, const VectorArgs& args, const Selection& selection = {});
Schedule allgatherv(TeamShape team, std::span<const std::uint64_t> bytes,
                    std::span<const std::uint64_t> offsets, bool in_place, const Selection& selection = {});
Schedule bcast(TeamShape team, std::uint32_t root, std::uint64_t bytes, const Selection& selection = {});
Schedule barrier(TeamShape team);

// For broadcasts of at least `bcast_small_bytes` the least of three estimates, in bytes through the busiest
// link, with segments that add little to the time until the chain is filled.
BcastAlgorithm choose_bcast(std::uint32_t team_size, std::uint64_t bytes, const Selection& selection = {});
std::uint64_t bcast_segment_bytes(std::uint32_t team_size, std::uint64_t bytes,
                                  const Selection& selection = {});
// Four segments to a block if they do not get too small, so that a rank can send on while it receives.
std::uint64_t ring_segment_bytes(std::uint64_t block_bytes, const Selection& selection = {});

}  // namespace offpath::collectives
