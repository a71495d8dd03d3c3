#include "pairs.h"

#include <algorithm>

#include "communicators.h"
#include "runtime.h"
#include "watcher.h"

namespace offpath::mpi::p2p {
namespace {

MPI_Comm payloads = MPI_COMM_NULL;
MPI_Comm self = MPI_COMM_NULL;
int tag_limit = 32767;

MPI_Comm private_copy(MPI_Comm comm) {
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm made = MPI_COMM_NULL;
    PMPI_Comm_group(comm, &group);
    // Not a duplicate: that would call the copy callbacks of the user's attributes.
    PMPI_Comm_create(comm, group, &made);
    PMPI_Group_free(&group);
    PMPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
    return made;
}

}  // namespace

void open_pairs() {
    if (runtime().settings.p2p.scope == Scope::off) return;
    open_headers(runtime().settings.p2p.secret, runtime().rank);
    payloads = private_copy(runtime().service);
    self = private_copy(MPI_COMM_SELF);
    void* value = nullptr;
    int found = 0;
    PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&value), &found);
    if (found != 0) tag_limit = *static_cast<int*>(value);
    open_waits();
}

void close_pairs() {
    if (payloads == MPI_COMM_NULL) return;
    close_watcher();
    close_waits();
    PMPI_Comm_free(&payloads);
    PMPI_Comm_free(&self);
}

Pairs* make_pairs(std::uint64_t id, const std::vector<int>& members) {
    const Scope scope = runtime().settings.p2p.scope;
    if (scope == Scope::off) return nullptr;
    const auto node = [](int rank) { return runtime().node_of[static_cast<std::size_t>(rank)]; };
    const int mine = node(runtime().rank);
    // All ranks have to agree whether there are pairs at all only with those that take part: a rank without
    // any has nobody to disagree with.
    const bool any = scope == Scope::all || std::any_of(members.begin(), members.end(),
                                                        [&](int rank) { return node(rank) != mine; });
    if (!any) return nullptr;
    auto* pairs = new Pairs;
    pairs->id = id;
    pairs->own_rank =
        static_cast<int>(std::find(members.begin(), members.end(), runtime().rank) - members.begin());
    // Only with one thread: several may make communicators at once.
    if (watches_waits()) begin_watching(*pairs);
    for (int rank : members)
        pairs->world_rank.push_back(scope == Scope::all || node(rank) != mine ? rank : Pairs::not_part);
    return pairs;
}

void destroy_pairs(Pairs* pairs) {
    if (pairs != nullptr && watches_waits()) end_watching(*pairs);
    delete pairs;
}

Pairs* find_pairs(MPI_Comm comm, Team** team) {
    if (!active() || payloads == MPI_COMM_NULL || comm == MPI_COMM_NULL) return nullptr;
    *team = &find_team(comm);
    return (*team)->pairs;
}

offpath_team_h world_team() {
    offpath_team_h team = nullptr;
    offpath_team_world(runtime().context, &team);
    return team;
}
MPI_Comm payload_comm() {
    return payloads;
}
MPI_Comm self_comm() {
    return self;
}
int payload_tags() {
    return tag_limit;
}
int largest_tag() {
    return tag_limit;
}

}  // namespace offpath::mpi::p2p
