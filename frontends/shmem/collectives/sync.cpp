// Sync: each member reports to the leader of its node, the leaders synchronise by dissemination, and each
// leader releases its node.

#include "collectives/collectives.h"
#include "collectives/steps.h"

namespace offpath::shmem {

namespace {

// Dissemination: after round k a leader knows, directly or through others, about the 2^(k+1) groups before
// it.
void meet_groups(Team& team, std::uint64_t count) {
    const int groups = team.group_count();
    for (int round = 0, distance = 1; distance < groups; ++round, distance *= 2) {
        tell(team, leader_of(team, (team.group() + distance) % groups), team.own.met(round), count);
        await(team.own.met(round), count);
    }
}

}  // namespace

void sync_team(Team& team) {
    if (team.size <= 1) {
        std::atomic_thread_fence(std::memory_order_seq_cst);
        return;
    }
    const std::uint64_t count = ++team.syncs;
    const int near = static_cast<int>(team.near.size());
    if (!team.leads()) {
        publish(team.near[0].arrived(team.place()), count);
        await(team.own.released(), count);
        return;
    }
    for (int place = 1; place < near; ++place)
        await(team.own.arrived(place), count);
    meet_groups(team, count);
    for (int place = 1; place < near; ++place)
        publish(team.near[static_cast<std::size_t>(place)].released(), count);
}

void barrier(Team& team) {
    quiet(default_context());
    sync_team(team);
}

void barrier_all() {
    barrier(world_team());
}

}  // namespace offpath::shmem
