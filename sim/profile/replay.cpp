#include "sim/profile/replay.h"

#include "sim/profile/player.h"

#include <algorithm>
#include <cmath>

namespace offpath::sim {
namespace {

// A communicator's team has one number at all of its ranks.
std::uint64_t team_of(const Routes& routes, std::uint32_t rank, std::int32_t comm) {
    constexpr std::uint64_t first_id = 1000;
    return comm == 0 ? Cluster::world_team : first_id + routes.communicator(rank, comm);
}

// Gives each communicator of the program a team.
void make_teams(const Routes& routes, const std::vector<RankProfile>& profiles,
                std::vector<std::unique_ptr<Player>>& players) {
    for (std::uint32_t rank = 0; rank < profiles.size(); ++rank) {
        for (std::size_t comm = 0; comm < profiles[rank].communicators.size(); ++comm) {
            if (comm == 0)
                players[rank]->join_world(comm);
            else
                players[rank]->join(comm, team_of(routes, rank, static_cast<std::int32_t>(comm)));
        }
    }
}

// The n-th window of a communicator is the same one on all of its ranks. It is as large as the largest access
// that any rank makes, since the profile has no offsets.
void make_windows(const Routes& routes, const std::vector<RankProfile>& profiles,
                  std::vector<std::unique_ptr<Player>>& players) {
    std::uint64_t bytes = 8;
    for (const RankProfile& profile : profiles)
        for (const ProfiledCall& call : profile.calls)
            if (call.window >= 0) bytes = std::max(bytes, call.bytes);
    for (std::uint32_t rank = 0; rank < profiles.size(); ++rank) {
        std::map<std::uint64_t, std::uint64_t> seen;
        for (const ProfiledWindow& window : profiles[rank].windows) {
            const std::uint64_t comm = routes.communicator(rank, window.comm);
            players[rank]->expose(window, (comm << 16) | ++seen[comm], bytes,
                                  team_of(routes, rank, window.comm));
        }
    }
}

// A core that several ranks share also serves other processes and changes between all of them. So ranks wait
// for it longer than the others compute. That part of the computations' time is in no other rank's.
//
// Where ranks take turns, they also have the core while they wait for messages, which the replay repeats.
// What nobody had is then the cores' time less that of all ranks' processes.
double stretch_of(const Cluster& cluster, const std::vector<RankProfile>& profiles) {
    constexpr double most = 1.2;
    if (!cluster.host_core_is_shared()) return 1;
    double computed = 0, waited = 0, ran = 0, lasted = 0;
    bool all_ran = true;
    for (const RankProfile& profile : profiles) {
        computed += profile.computed_s;
        waited += profile.preempted_s;
        ran += profile.cpu_s;
        lasted = std::max(lasted, profile.measured_s());
        all_ran = all_ran && profile.cpu_s > 0;
    }
    if (computed <= 0) return 1;
    if (cluster.platform().turn_s > 0 && all_ran) {
        const double cores = std::ceil(static_cast<double>(profiles.size()) / cluster.ranks_of_host_core());
        return std::clamp(cores * lasted / ran, 1.0, most);
    }
    return std::clamp((computed + waited) / (computed * cluster.ranks_of_host_core()), 1.0, most);
}

}  // namespace

Replayed replay(Cluster& cluster, const std::vector<RankProfile>& profiles) {
    Replayed result;
    result.calls.resize(profiles.size());
    const Routes routes(cluster, profiles);
    const double stretch = stretch_of(cluster, profiles);
    Meetings meetings;
    std::vector<std::unique_ptr<Player>> players;
    for (std::uint32_t rank = 0; rank < profiles.size(); ++rank)
        players.push_back(
            std::make_unique<Player>(cluster, rank, profiles, routes, meetings, stretch, result));
    make_teams(routes, profiles, players);
    make_windows(routes, profiles, players);
    Job job(cluster);
    job.run([&players](Rank& rank) { return players[rank.number()]->play(rank); });
    return result;
}

}  // namespace offpath::sim
