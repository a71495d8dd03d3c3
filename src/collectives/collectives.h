// The builders of the collectives. Pure: (team, rank, sizes) -> Schedule. Each algorithm has its own file,
// under its literature name; selection.h chooses between them by size and team. All ranks of a team call a
// builder with consistent arguments; their schedules then match (schedule::validate_team).
//
// Buffers are bound to slots at start. Slot 0 is the send buffer (or the only buffer), slot 1 the receive
// buffer; scratch slots follow. In an in-place form there is no send buffer, and slot 0 is the receive buffer
// (see each builder). Algorithms that pipeline cut large messages into segments. No builder limits the size
// of a message, because the engine cuts messages into chunks.
#pragma once

#include "schedule/schedule.h"

#include <cstdint>
#include <span>
#include <vector>

namespace offpath::collectives {

using schedule::Schedule;

struct TeamShape {
    std::uint32_t rank = 0;
    std::uint32_t size = 1;
};

// Sizes and offsets in bytes, one entry per rank; offsets are in the send and receive buffer.
struct VectorArgs {
    std::span<const std::uint64_t> send_bytes, send_offsets, recv_bytes, recv_offsets;
};

// alltoall(v): slot 0 send, slot 1 recv. `credits`: how many sends of a rank are in flight at once; 0 counts
// as 1. Empty blocks create no ops.
Schedule alltoallv_linear(TeamShape team, const VectorArgs& args, std::uint32_t credits);
Schedule alltoallv_pairwise(TeamShape team, const VectorArgs& args);
Schedule alltoall_linear(TeamShape team, std::uint64_t bytes, std::uint32_t credits);
Schedule alltoall_pairwise(TeamShape team, std::uint64_t bytes);

// allgather(v): slot 0 send (this rank's block), slot 1 recv. In place: slot 0 is the receive buffer and the
// only slot. segment_bytes 0: blocks are not cut.
Schedule allgatherv_ring(TeamShape team, std::span<const std::uint64_t> bytes,
                         std::span<const std::uint64_t> offsets, bool in_place, std::uint64_t segment_bytes);
Schedule allgatherv_direct(TeamShape team, std::span<const std::uint64_t> bytes,
                           std::span<const std::uint64_t> offsets, bool in_place, std::uint32_t credits);

// bcast: slot 0 is the buffer.
Schedule bcast_binomial(TeamShape team, std::uint32_t root, std::uint64_t bytes);
Schedule bcast_chain(TeamShape team, std::uint32_t root, std::uint64_t bytes,
                     std::uint64_t segment_bytes);                             // pipelined
Schedule bcast_ring(TeamShape team, std::uint32_t root, std::uint64_t bytes);  // scatter, then ring allgather

// What the reductions below compute. Sizes are whole numbers of elements. The order in which operands are
// folded depends only on the team and the sizes. Where several ranks compute the same value, the operand of
// the lower ranks is always the left one, so all of them get the same bits. Accumulators are scratch, so host
// memory is read once and written once, whatever the back end. segment_bytes must be a multiple of
// reduce_unit, or 0.
struct Reducing {
    schedule::DataType type = schedule::DataType::none;
    schedule::Reduction reduction = schedule::Reduction::none;
};
constexpr std::uint64_t reduce_unit = 64;

// allreduce: slot 0 send, slot 1 recv; in place: slot 0 is the receive buffer and the only slot.
Schedule allreduce_recursive_doubling(TeamShape team, std::uint64_t bytes, Reducing what, bool in_place);
// Reduce-scatter, then allgather, pipelined.
Schedule allreduce_ring(TeamShape team, std::uint64_t bytes, Reducing what, bool in_place,
                        std::uint64_t segment_bytes);

// reduce: slot 0 send; at the root slot 1 recv, or, in place, slot 0 recv.
Schedule reduce_binomial(TeamShape team, std::uint32_t root, std::uint64_t bytes, Reducing what,
                         bool in_place);
Schedule reduce_chain(TeamShape team, std::uint32_t root, std::uint64_t bytes, Reducing what, bool in_place,
                      std::uint64_t segment_bytes);
// Reduce-scatter around the ring, then gather.
Schedule reduce_ring(TeamShape team, std::uint32_t root, std::uint64_t bytes, Reducing what, bool in_place,
                     std::uint64_t segment_bytes);

// reduce_scatter: slot 0 send, with the blocks of all ranks in order; slot 1 recv, with this rank's block.
Schedule reduce_scatter_pairwise(TeamShape team, std::span<const std::uint64_t> bytes, Reducing what,
                                 std::uint64_t segment_bytes);
Schedule reduce_scatter_ring(TeamShape team, std::span<const std::uint64_t> bytes, Reducing what,
                             std::uint64_t segment_bytes);

// scan, exscan: slots as for allreduce.
Schedule scan_recursive_doubling(TeamShape team, std::uint64_t bytes, Reducing what, bool in_place,
                                 bool exclusive);
Schedule scan_chain(TeamShape team, std::uint64_t bytes, Reducing what, bool in_place, bool exclusive,
                    std::uint64_t segment_bytes);

// gather(v): slot 0 send; at the root also slot 1 recv, or, in place, slot 0 recv alone. The arrays matter at
// the root only, where own_bytes is ignored. scatter(v): slot 0 recv; at the root slot 0 send and slot 1
// recv, or, in place, slot 0 send alone.
Schedule gatherv_linear(TeamShape team, std::uint32_t root, std::uint64_t own_bytes,
                        std::span<const std::uint64_t> bytes, std::span<const std::uint64_t> offsets,
                        bool in_place, std::uint32_t credits);
Schedule gather_binomial(TeamShape team, std::uint32_t root, std::uint64_t bytes, bool in_place);
Schedule scatterv_linear(TeamShape team, std::uint32_t root, std::uint64_t own_bytes,
                         std::span<const std::uint64_t> bytes, std::span<const std::uint64_t> offsets,
                         bool in_place, std::uint32_t credits);
Schedule scatter_binomial(TeamShape team, std::uint32_t root, std::uint64_t bytes, bool in_place);

// Neighbourhoods: slot 0 send, slot 1 recv. One entry per edge. With several edges between two ranks, the
// k-th outgoing one pairs with the k-th incoming one.
struct NeighborArgs {
    std::span<const std::uint32_t> destinations;
    std::span<const std::uint64_t> send_bytes, send_offsets;
    std::span<const std::uint32_t> sources;
    std::span<const std::uint64_t> recv_bytes, recv_offsets;
};
Schedule neighbor_alltoallv_linear(TeamShape team, const NeighborArgs& args, std::uint32_t credits);

// The barrier has no slots.
Schedule barrier_dissemination(TeamShape team);

}  // namespace offpath::collectives
