#include "communicators.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "collectives/topology.h"
#include "losses.h"
#include "p2p/pairs.h"
#include "rma/ways.h"
#include "runtime.h"
#include "tuning/agreement.h"
#include "tuning/explain.h"

namespace offpath::mpi {
namespace {

int keyval = MPI_KEYVAL_INVALID;
std::atomic<std::uint32_t> teams_led{0};
// Raised whenever what a communicator's handle stands for may have changed.
std::atomic<std::uint64_t> epoch{1};

Team& shared_record(HostReason reason) {
    static Team one_rank, idup, foreign, no_team;
    Team& record = reason == HostReason::one_rank  ? one_rank
                   : reason == HostReason::idup    ? idup
                   : reason == HostReason::no_team ? no_team
                                                   : foreign;
    return record;
}

void set_up_shared_records() {
    for (HostReason reason :
         {HostReason::one_rank, HostReason::idup, HostReason::foreign, HostReason::no_team}) {
        shared_record(reason).reason = reason;
    }
    shared_record(HostReason::one_rank).rank = 0;
    shared_record(HostReason::one_rank).size = 1;
}

// MPI_Comm_idup copies attributes and gives no moment to agree on a team. For every other way of duplicating,
// the record set here is replaced by communicator_created.
int on_copy(MPI_Comm, int, void*, void*, void* value, int* flag) {
    *static_cast<void**>(value) = &shared_record(HostReason::idup);
    *flag = 1;
    return MPI_SUCCESS;
}

int on_delete(MPI_Comm, int, void* value, void*) {
    Team& team = *static_cast<Team*>(value);
    epoch.fetch_add(1, std::memory_order_release);
    if (team.handle == nullptr) return MPI_SUCCESS;
    explain_summary(team);
    close_tuning(team);
    team.comm = MPI_COMM_NULL;
    end_use(team);
    release(team);
    return MPI_SUCCESS;
}

void set_team(MPI_Comm comm, Team& team) {
    PMPI_Comm_set_attr(comm, keyval, &team);
    epoch.fetch_add(1, std::memory_order_release);
}

// The members' ranks in the world; empty when one is not of it.
std::vector<int> world_ranks(MPI_Group group, int size) {
    std::vector<int> local(static_cast<std::size_t>(size));
    std::vector<int> world(local.size());
    std::iota(local.begin(), local.end(), 0);
    PMPI_Group_translate_ranks(group, size, local.data(), runtime().world_group, world.data());
    const bool all = std::find(world.begin(), world.end(), MPI_UNDEFINED) == world.end();
    return all ? world : std::vector<int>{};
}

// Unique in the job: the rank that leads a team numbers the teams that it leads.
std::uint64_t agree_on_id(MPI_Comm comm, int rank) {
    std::uint64_t id = 0;
    if (rank == 0) {
        id = static_cast<std::uint64_t>(runtime().rank) << 32 | (teams_led.fetch_add(1) + 1U);
    }
    PMPI_Bcast(&id, 1, MPI_UINT64_T, 0, comm);
    return id;
}

TeamShape shape_of(const std::vector<int>& members) {
    std::set<int> nodes;
    for (const int rank : members)
        nodes.insert(runtime().node_of[static_cast<std::size_t>(rank)]);
    return {static_cast<std::uint32_t>(members.size()), static_cast<std::uint32_t>(nodes.size())};
}

// A team of `comm` around `make`, which sets the handle, or the shared record when any rank could not make
// its part.
template <typename Make>
void give_team(MPI_Comm comm, int rank, int size, const std::vector<int>& members, std::uint64_t id,
               Make make) {
    auto* team = new Team;
    team->comm = comm;
    team->id = id;
    team->rank = rank;
    team->size = size;
    team->of_world = comm == MPI_COMM_WORLD;
    const bool good = make(&team->handle) == OFFPATH_OK && !any_loss.load(std::memory_order_relaxed);
    if (team->small_messages.open(comm, members, good)) {
        open_tuning(*team, shape_of(members), id);
        team->pairs = p2p::make_pairs(id, members);
        set_team(comm, *team);
        return;
    }
    if (team->handle != nullptr && !team->of_world) offpath_team_destroy(team->handle);
    delete team;
    set_team(comm, shared_record(HostReason::no_team));
}

// Of a team beside another one. Apart from agree_on_id's by the second-highest bit; two alike would need 2^31
// such teams at a time.
std::uint64_t id_beside(std::uint64_t team, std::uint64_t number) {
    constexpr std::uint64_t beside = std::uint64_t{1} << 62;
    std::uint64_t mixed = team * 0x9e3779b97f4a7c15 + number;
    for (const int shift : {30, 27, 31}) {
        mixed ^= mixed >> shift;
        mixed *= 0xbf58476d1ce4e5b9;
    }
    return beside | (mixed & (beside - 1));
}

}  // namespace

Team::Team() = default;
Team::~Team() = default;

bool all_agree(MPI_Comm comm, bool mine) {
    int good = mine ? 1 : 0;
    PMPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, comm);
    return good == 1;
}

Team& find_team(MPI_Comm comm) {
    struct Latest {
        MPI_Comm comm;
        Team* team;
        std::uint64_t epoch;
    };
    thread_local Latest latest{};  // no epoch is 0
    const std::uint64_t now = epoch.load(std::memory_order_acquire);
    if (latest.comm == comm && latest.epoch == now && latest.team != nullptr) return *latest.team;

    void* value = nullptr;
    int found = 0;
    PMPI_Comm_get_attr(comm, keyval, static_cast<void*>(&value), &found);
    Team* team =
        found != 0 && value != nullptr ? static_cast<Team*>(value) : &shared_record(HostReason::foreign);
    latest = {comm, team, now};
    return *team;
}

void retain(Team& team) {
    team.references.fetch_add(1, std::memory_order_relaxed);
}

void release(Team& team) {
    if (team.references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    p2p::destroy_pairs(team.pairs);
    forget_losses(team);
    delete &team;
}

void end_use(Team& team) {
    if (team.users.fetch_sub(1, std::memory_order_acq_rel) != 1 || team.of_world || !active()) return;
    offpath_team_destroy(team.handle);
}

offpath_team_h make_team_beside(const Team& team, MPI_Comm comm, std::uint64_t number) {
    MPI_Group group = MPI_GROUP_NULL;
    PMPI_Comm_group(comm, &group);
    const std::vector<int> members = world_ranks(group, team.size);
    PMPI_Group_free(&group);
    const std::vector<std::uint32_t> ranks(members.begin(), members.end());
    offpath_team_h made = nullptr;
    offpath_team_create(runtime().context, ranks.data(), static_cast<std::uint32_t>(ranks.size()),
                        id_beside(team.id, number), &made);
    return made;
}

void begin_message(Team& team) {
    retain(team);
    team.messages.fetch_add(1, std::memory_order_relaxed);
}

void end_message(Team& team) {
    if (team.messages.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        MPI_Comm comm = team.freed;
        PMPI_Comm_free(&comm);
    }
    release(team);
}

bool keep_for_messages(MPI_Comm* comm) {
    Team& team = find_team(*comm);
    if (team.handle == nullptr || team.of_world) return false;
    team.freed = *comm;
    if (team.messages.fetch_sub(1, std::memory_order_acq_rel) == 1) return false;
    *comm = MPI_COMM_NULL;
    return true;
}

void communicator_created(MPI_Comm comm) {
    if (!active() || comm == MPI_COMM_NULL) return;
    int inter = 0;
    int size = 0;
    int rank = 0;
    PMPI_Comm_test_inter(comm, &inter);
    PMPI_Comm_size(comm, &size);
    PMPI_Comm_rank(comm, &rank);
    if (inter != 0) return set_team(comm, shared_record(HostReason::foreign));
    if (size == 1) return set_team(comm, shared_record(HostReason::one_rank));

    MPI_Group group = MPI_GROUP_NULL;
    PMPI_Comm_group(comm, &group);
    const std::vector<int> members = world_ranks(group, size);
    if (members.empty()) {
        set_team(comm, shared_record(HostReason::foreign));
    } else {
        const std::uint64_t id = agree_on_id(comm, rank);
        const std::vector<std::uint32_t> ranks(members.begin(), members.end());
        give_team(comm, rank, size, members, id, [&](offpath_team_h* handle) {
            return offpath_team_create(runtime().context, ranks.data(), static_cast<std::uint32_t>(size), id,
                                       handle);
        });
    }
    PMPI_Group_free(&group);
}

void open_communicators() {
    set_up_shared_records();
    PMPI_Comm_create_keyval(on_copy, on_delete, &keyval, nullptr);
    PMPI_Comm_group(MPI_COMM_WORLD, &runtime().world_group);
    set_team(MPI_COMM_SELF, shared_record(HostReason::one_rank));
    open_small_messages();
    std::vector<int> everybody(static_cast<std::size_t>(runtime().size));
    std::iota(everybody.begin(), everybody.end(), 0);
    give_team(MPI_COMM_WORLD, runtime().rank, runtime().size, everybody, 0,
              [](offpath_team_h* handle) { return offpath_team_world(runtime().context, handle); });
}

void close_communicators() {
    PMPI_Comm_delete_attr(MPI_COMM_WORLD, keyval);
    PMPI_Comm_delete_attr(MPI_COMM_SELF, keyval);
    close_small_messages();
    PMPI_Comm_free_keyval(&keyval);
    PMPI_Group_free(&runtime().world_group);
}

}  // namespace offpath::mpi
