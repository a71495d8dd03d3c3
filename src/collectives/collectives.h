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

// No slots.
Schedule barrier_dissemination(TeamShape team);

}  // namespace offpath::collectives
