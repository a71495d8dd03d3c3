#include "teams.h"

#include <map>
#include <mutex>
#include <numeric>

#include "runtime/mixed_teams.h"
#include "runtime/regions.h"
#include "runtime/runtime.h"

namespace offpath::mpi::devices {
namespace {

struct Known {
    offpath_team_h messages = nullptr;
    std::uint64_t windows = 0;
};
std::mutex known_mutex;
std::map<std::vector<std::uint32_t>, Known> known;

offpath_team_h create(const std::vector<std::uint32_t>& ranks, std::uint64_t number) {
    const std::vector<std::uint32_t> members = mixed_teams::members(ranks);
    offpath_team_h team = nullptr;
    offpath_team_create(context_with_devices(), members.data(), static_cast<std::uint32_t>(members.size()),
                        mixed_teams::id(mixed_teams::TeamKind::mixed, ranks, number), &team);
    return team;
}

}  // namespace

std::vector<std::uint32_t> world_ranks(MPI_Comm comm) {
    MPI_Group group = MPI_GROUP_NULL;
    int size = 0;
    PMPI_Comm_group(comm, &group);
    PMPI_Group_size(group, &size);
    std::vector<int> mine(static_cast<std::size_t>(size)), world(mine.size());
    std::iota(mine.begin(), mine.end(), 0);
    PMPI_Group_translate_ranks(group, size, mine.data(), runtime().world_group, world.data());
    PMPI_Group_free(&group);
    for (const int rank : world)
        if (rank == MPI_UNDEFINED) return {};
    return {world.begin(), world.end()};
}

offpath_team_h team_for(const std::vector<std::uint32_t>& ranks) {
    const std::lock_guard lock(known_mutex);
    offpath_team_h& team = known[ranks].messages;
    if (team == nullptr) team = create(ranks, 0);
    return team;
}

offpath_team_h new_team_for(const std::vector<std::uint32_t>& ranks) {
    const std::lock_guard lock(known_mutex);
    return create(ranks, ++known[ranks].windows);
}

}  // namespace offpath::mpi::devices
