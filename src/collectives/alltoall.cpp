// alltoall is alltoallv with equal blocks, one after the other.
#include "collectives/collectives.h"

namespace offpath::collectives {
namespace {

struct EqualBlocks {
    EqualBlocks(std::uint32_t count, std::uint64_t block) : bytes(count, block), offsets(count) {
        for (std::uint32_t i = 0; i < count; ++i)
            offsets[i] = i * block;
    }
    VectorArgs args() const { return {bytes, offsets, bytes, offsets}; }
    std::vector<std::uint64_t> bytes, offsets;
};

}  // namespace

Schedule alltoall_linear(TeamShape team, std::uint64_t bytes, std::uint32_t credits) {
    return alltoallv_linear(team, EqualBlocks(team.size, bytes).args(), credits);
}

Schedule alltoall_pairwise(TeamShape team, std::uint64_t bytes) {
    return alltoallv_pairwise(team, EqualBlocks(team.size, bytes).args());
}

}  // namespace offpath::collectives
