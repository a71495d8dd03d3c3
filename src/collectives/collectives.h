// The collectives' builders. Pure: (team, rank, sizes) -> Schedule, one algorithm a file under its literature
// name; which one is taken for which size and team stands in selection.h. All ranks of a team call a builder
// with arguments that agree; then the schedules match (schedule::validate_team). Buffers are bound to slots
// at start: slot 0 is the send buffer (or the only one), slot 1 the receive buffer; scratch slots follow. "In
// place" means that slot 0 is absent: the data lie in what is then slot 0 = receive buffer (documented per
// builder). Large messages are cut into segments where the algorithm pipelines; ranges of at most
// `max_message` bytes are not needed (the engine chunks).
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

// Sizes in bytes, one entry a rank; offsets in the send and receive buffer.
struct VectorArgs {
    std::span<const std::uint64_t> send_bytes, send_offsets, recv_bytes, recv_offsets;
};

// alltoall(v): slot 0 send, slot 1 recv. `credits`: how many sends of a rank are in flight at once (0 counts
// as 1). Blocks of no bytes make no ops.
Schedule alltoallv_linear(TeamShape team, const VectorArgs& args, std::uint32_t credits);
Schedule alltoallv_pairwise(TeamShape team, const VectorArgs& args);
Schedule alltoall_linear(TeamShape team, std::uint64_t bytes, std::uint32_t credits);
Schedule alltoall_pairwise(TeamShape team, std::uint64_t bytes);

// allgather(v): slot 0 send (block of this rank), slot 1 recv; in place: slot 0 is the receive buffer and the
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

// What the reductions below compute. Sizes are whole numbers of elements. Operands are folded in an order
// that hangs on the team and the sizes alone; of two, the one of the lower ranks is the left one where ranks
// compute the same thing twice, so that they get the same bits. Accumulators are scratch, so that host memory
// is read once and written once, whatever reaches it. segment_bytes must be a multiple of reduce_unit, or 0.
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

// reduce_scatter: slot 0 send, the blocks of all ranks one after the other; slot 1 recv, this rank's block.
Schedule reduce_scatter_pairwise(TeamShape team, std::span<const std::uint64_t> bytes, Reducing what,
                                 std::uint64_t segment_bytes);
Schedule reduce_scatter_ring(TeamShape team, std::span<const std::uint64_t> bytes, Reducing what,
                             std::uint64_t segment_bytes);

// scan, exscan: slots as allreduce.
Schedule scan_recursive_doubling(TeamShape team, std::uint64_t bytes, Reducing what, bool in_place,
                                 bool exclusive);
Schedule scan_chain(TeamShape team, std::uint64_t bytes, Reducing what, bool in_place, bool exclusive,
                    std::uint64_t segment_bytes);

// gather(v): slot 0 send; at the root slot 1 recv, or, in place, slot 0 recv. The arrays count at the root
// only; there, own_bytes is not looked at. scatter(v): slot 0 recv; at the root slot 0 send and slot 1 recv,
// or, in place, slot 0 send alone.
Schedule gatherv_linear(TeamShape team, std::uint32_t root, std::uint64_t own_bytes,
                        std::span<const std::uint64_t> bytes, std::span<const std::uint64_t> offsets,
                        bool in_place, std::uint32_t credits);
Schedule gather_binomial(TeamShape team, std::uint32_t root, std::uint64_t bytes, bool in_place);
Schedule scatterv_linear(TeamShape team, std::uint32_t root, std::uint64_t own_bytes,
                         std::span<const std::uint64_t> bytes, std::span<const std::uint64_t> offsets,
                         bool in_place, std::uint32_t credits);
Schedule scatter_binomial(TeamShape team, std::uint32_t root, std::uint64_t bytes, bool in_place);

// Neighbourhoods: slot 0 send, slot 1 recv. One entry an edge; of several edges between two ranks the k-th
// outgoing one meets the k-th incoming one.
struct NeighborArgs {
    std::span<const std::uint32_t> destinations;
    std::span<const std::uint64_t> send_bytes, send_offsets;
    std::span<const std::uint32_t> sources;
    std::span<const std::uint64_t> recv_bytes, recv_offsets;
};
Schedule neighbor_alltoallv_linear(TeamShape team, const NeighborArgs& args, std::uint32_t credits);

// No slots.
Schedule barrier_dissemination(TeamShape team);

}  // namespace offpath::collectives
