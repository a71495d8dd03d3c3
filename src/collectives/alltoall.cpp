// alltoall is alltoallv with contiguous blocks of equal size.
#include "collectives/collectives.h"
#include "collectives/patterns/equal_blocks.h"

namespace offpath::collectives {
Schedule alltoall_linear(TeamShape team, std::uint64_t bytes, std::uint32_t credits) {
    const EqualBlocks blocks(team.size, bytes);
    return alltoallv_linear(team, {blocks.bytes, blocks.offsets, blocks.bytes, blocks.offsets}, credits);
}

Schedule alltoall_pairwise(TeamShape team, std::uint64_t bytes) {
    const EqualBlocks blocks(team.size, bytes);
    return alltoallv_pairwise(team, {blocks.bytes, blocks.offsets, blocks.bytes, blocks.offsets});
}

}  // namespace offpath::collectives
