#include "communicator_state.h"

#include <algorithm>

#include "communicators/communicators.h"
#include "header_watcher.h"
#include "neighbours.h"
#include "received_bytes.h"
#include "rescue.h"
#include "runtime/own_communicators.h"
#include "runtime/runtime.h"
#include "settings.h"
#include "short_receives.h"

namespace offpath::mpi::p2p {
namespace {

MPI_Comm payloads = MPI_COMM_NULL;
int tag_limit = 32767;

void destroy_pairs(Pairs* pairs) {
    if (watches_waits()) end_watching(*pairs);
    outstanding.pairs.lower();
    delete pairs;
}

}  // namespace

void open_pairs() {
    if (job_settings.scope == Scope::off) return;
    open_neighbours();
    open_headers(job_settings.secret, runtime().rank);
    open_received_bytes();
    short_receives_are_used = !runtime().threads;
    payloads = own_communicator(runtime().service);
    void* value = nullptr;
    int found = 0;
    PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&value), &found);
    if (found != 0) tag_limit = *static_cast<int*>(value);
    open_rescue();
    open_waits();
}

void close_pairs() {
    if (payloads == MPI_COMM_NULL) return;
    close_watcher();
    close_rescue();
    close_waits();
    PMPI_Comm_free(&payloads);
}

void give_pairs(Team& team, const std::vector<int>& members) {
    const Scope scope = job_settings.scope;
    if (scope == Scope::off) return;
    const auto node = [](int rank) { return runtime().node_of[static_cast<std::size_t>(rank)]; };
    const int mine = node(runtime().rank);
    // Ranks must agree on whether there are pairs only with ranks that take part. A rank without such
    // partners cannot disagree with any.
    const bool any = scope == Scope::all || std::any_of(members.begin(), members.end(),
                                                        [&](int rank) { return node(rank) != mine; });
    if (!any) return;
    team.pairs = Owned<Pairs>(new Pairs, {destroy_pairs});
    Pairs* const pairs = team.pairs.get();
    pairs->id = team.id;
    pairs->own_rank =
        static_cast<int>(std::find(members.begin(), members.end(), runtime().rank) - members.begin());
    // Only in programs with one thread, because several threads may make communicators at once.
    if (watches_waits()) begin_watching(*pairs);
    // A message to oneself never leaves the process, so the host's MPI completes it at once.
    const auto takes_part = [&](int rank) {
        return rank != runtime().rank && (scope == Scope::all || node(rank) != mine);
    };
    for (int rank : members)
        pairs->world_rank.push_back(takes_part(rank) ? rank : Pairs::not_part);
    outstanding.pairs.raise();
}

offpath_team_h world_team() {
    offpath_team_h team = nullptr;
    offpath_team_world(runtime().context, &team);
    return team;
}
MPI_Comm payload_comm() {
    return payloads;
}
int payload_tags() {
    return tag_limit;
}
int largest_tag() {
    return tag_limit;
}

}  // namespace offpath::mpi::p2p
