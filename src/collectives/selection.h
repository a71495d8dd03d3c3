// Selection: chooses the algorithm of every collective by size and team. It is the only place that does.
// Pure; all ranks get the same answer for consistent arguments. Values that only one rank knows, such as its
// counts in an alltoallv, have no influence.
#pragma once

#include "collectives/collectives.h"

namespace offpath::collectives {

struct Selection {
    std::uint32_t alltoall_credits = 4;  // sends in flight at once, for small blocks
    std::uint64_t alltoall_single_bytes =
        256 << 10;  // from here on one at a time, so that few senders meet at one receiver
    std::uint32_t alltoall_pairwise_ranks = 64;  // from here on: pairwise, which keeps senders in step
    // Pipelined chain and ring: the segment size, and the smallest one used to fill a chain faster. Below 64
    // KiB the transport sends without asking the receiver. Segments then leave in order, and proxies that
    // share a core wait less for each other. In a 4-node lab at 1 Gbit/s, 48 KiB beat 128 and 256 KiB in each
    // of three alternating rounds (4 MiB bcast) and in two (4 MiB allgather).
    std::uint64_t segment_bytes = 48 << 10;
    std::uint64_t least_segment_bytes = 32 << 10;
    std::uint64_t most_segments = 2048;              // of one block; larger blocks have longer segments
    std::uint64_t bcast_small_bytes = 64 << 10;      // below: binomial
    std::uint64_t allgather_small_bytes = 32 << 10;  // below, for the largest block: direct
    // Up to this many ranks: direct and without segments, because no rank forwards. With more ranks the ring
    // keeps every link at its rate, while direct would have several senders meet at one receiver.
    std::uint32_t allgather_direct_ranks = 2;
    std::uint64_t hop_bytes = 16 << 10;  // what a link carries in the time of one hop
    // Up to this size data are reduced whole at every step. The scratch needed is the size times the number
    // of steps.
    std::uint64_t reduce_whole_bytes = 256 << 10;
    std::uint64_t reduce_share =
        8;  // what a link carries in the time in which this many times as much is reduced
    std::uint64_t reduce_scatter_small_bytes = 32 << 10;  // below, for the largest block: pairwise
    std::uint32_t gather_credits = 4;                     // blocks that the root takes or sends at once
    std::uint64_t gather_tree_bytes = 1 << 10;  // up to here, and for more ranks than this: binomial
    std::uint32_t gather_linear_ranks = 8;
};

enum class BcastAlgorithm : std::uint8_t { binomial, chain, ring };
enum class ReduceAlgorithm : std::uint8_t { binomial, chain, ring };
enum class AllreduceAlgorithm : std::uint8_t { recursive_doubling, ring };
enum class ScanAlgorithm : std::uint8_t { recursive_doubling, chain };

Schedule alltoall(TeamShape team, std::uint64_t bytes, const Selection& selection = {});
Schedule alltoallv(TeamShape team, const VectorArgs& args, const Selection& selection = {});
Schedule allgatherv(TeamShape team, std::span<const std::uint64_t> bytes,
                    std::span<const std::uint64_t> offsets, bool in_place, const Selection& selection = {});
Schedule bcast(TeamShape team, std::uint32_t root, std::uint64_t bytes, const Selection& selection = {});
Schedule barrier(TeamShape team);
Schedule allreduce(TeamShape team, std::uint64_t bytes, Reducing what, bool in_place,
                   const Selection& selection = {});
Schedule reduce(TeamShape team, std::uint32_t root, std::uint64_t bytes, Reducing what, bool in_place,
                const Selection& selection = {});
Schedule reduce_scatter(TeamShape team, std::span<const std::uint64_t> bytes, Reducing what,
                        const Selection& selection = {});
Schedule scan(TeamShape team, std::uint64_t bytes, Reducing what, bool in_place, bool exclusive,
              const Selection& selection = {});
Schedule gather(TeamShape team, std::uint32_t root, std::uint64_t bytes, bool in_place,
                const Selection& selection = {});
Schedule scatter(TeamShape team, std::uint32_t root, std::uint64_t bytes, bool in_place,
                 const Selection& selection = {});
// Arguments as for the linear builders. No rank knows the others' sizes, so there is nothing to choose.
Schedule gatherv(TeamShape team, std::uint32_t root, std::uint64_t own_bytes,
                 std::span<const std::uint64_t> bytes, std::span<const std::uint64_t> offsets, bool in_place,
                 const Selection& selection = {});
Schedule scatterv(TeamShape team, std::uint32_t root, std::uint64_t own_bytes,
                  std::span<const std::uint64_t> bytes, std::span<const std::uint64_t> offsets, bool in_place,
                  const Selection& selection = {});
Schedule neighbor_alltoallv(TeamShape team, const NeighborArgs& args, const Selection& selection = {});

// For broadcasts of at least `bcast_small_bytes`: takes the least of three estimates, in bytes through the
// busiest link. Segments are sized so that filling the chain takes little time.
BcastAlgorithm choose_bcast(std::uint32_t team_size, std::uint64_t bytes, const Selection& selection = {});
std::uint64_t bcast_segment_bytes(std::uint32_t team_size, std::uint64_t bytes,
                                  const Selection& selection = {});
// The same for reductions. A step on whole data also costs the reduction, which segments hide behind the
// transfer.
ReduceAlgorithm choose_reduce(std::uint32_t team_size, std::uint64_t bytes, const Selection& selection = {});
AllreduceAlgorithm choose_allreduce(std::uint32_t team_size, std::uint64_t bytes,
                                    const Selection& selection = {});
ScanAlgorithm choose_scan(std::uint32_t team_size, std::uint64_t bytes, const Selection& selection = {});
// Rounds to segments of whole elements, whatever the type.
std::uint64_t reduce_segment_bytes(std::uint64_t segment_bytes);
// Four segments per block unless they become too small, so that a rank can send on while it receives.
std::uint64_t ring_segment_bytes(std::uint64_t block_bytes, const Selection& selection = {});

}  // namespace offpath::collectives
