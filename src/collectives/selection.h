// Which algorithm serves which collective, by size and team: the one place to look and to change. Pure; all
// ranks get the same answer for arguments that agree.
#pragma once

#include "collectives/collectives.h"

namespace offpath::collectives {

struct Selection {
    std::uint32_t alltoall_credits = 4;
    std::uint64_t segment_bytes = 512 << 10;         // pipelined chain and ring
    std::uint64_t bcast_small_bytes = 64 << 10;      // below: binomial
    std::uint64_t allgather_small_bytes = 32 << 10;  // below: direct
};

Schedule alltoall(TeamShape team, std::uint64_t bytes, const Selection& selection = {});
Schedule alltoallv(TeamShape team, const VectorArgs& args, const Selection& selection = {});
Schedule allgatherv(TeamShape team, std::span<const std::uint64_t> bytes,
                    std::span<const std::uint64_t> offsets, bool in_place, const Selection& selection = {});
Schedule bcast(TeamShape team, std::uint32_t root, std::uint64_t bytes, const Selection& selection = {});
Schedule barrier(TeamShape team);

}  // namespace offpath::collectives
