#include "engine/teams/team.h"

namespace offpath::engine {

bool Team::mark_gone(std::uint32_t job_rank, const Peer* proxy) {
    const auto it = std::find(job_ranks.begin(), job_ranks.end(), job_rank);
    if (it == job_ranks.end() || peers[static_cast<std::size_t>(it - job_ranks.begin())] != proxy)
        return false;
    left.resize(peers.size(), false);
    left[static_cast<std::size_t>(it - job_ranks.begin())] = true;
    return true;
}

}  // namespace offpath::engine
