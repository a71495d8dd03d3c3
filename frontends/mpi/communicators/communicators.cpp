#include "communicators.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "agreeing.h"
#include "runtime/error_handlers.h"
#include "runtime/losses.h"
#include "runtime/outstanding_counts.h"
#include "runtime/parts.h"
#include "runtime/runtime.h"

namespace offpath::mpi {
namespace {

int team_keyval = MPI_KEYVAL_INVALID;

Team& shared_record(HostReason reason) {
    static Team one_rank, idup, foreign, no_team, lost;
    Team& record = reason == HostReason::one_rank  ? one_rank
                   : reason == HostReason::idup    ? idup
                   : reason == HostReason::no_team ? no_team
                   : reason == HostReason::lost    ? lost
                                                   : foreign;
    return record;
}

void set_up_shared_records() {
    for (HostReason reason : {HostReason::one_rank, HostReason::idup, HostReason::foreign,
                              HostReason::no_team, HostReason::lost}) {
        shared_record(reason).reason = reason;
    }
    shared_record(HostReason::one_rank).rank = 0;
    shared_record(HostReason::one_rank).size = 1;
}

// MPI_Comm_idup copies attributes and gives no opportunity to agree on a team. For every other way of
// duplicating, communicator_created replaces the record that is set here.
int on_copy_team(MPI_Comm, int, void*, void*, void* value, int* flag) {
    *static_cast<void**>(value) = &shared_record(HostReason::idup);
    *flag = 1;
    return MPI_SUCCESS;
}

// The communicator ends while it has the key for remote devices.
void end_devices(Team& team) {
    if (team.devices.exchange(nullptr) != nullptr) outstanding.pairs.lower();
}

int on_delete_team(MPI_Comm, int, void* value, void*) {
    Team& team = *static_cast<Team*>(value);
    team_epoch.fetch_add(1, std::memory_order_release);
    if (team.alone) {
        end_devices(team);
        release(team);
        return MPI_SUCCESS;
    }
    if (team.departure == nullptr) return MPI_SUCCESS;
    end_devices(team);
    for (const Part& part : parts)
        if (part.communicator_ends != nullptr) part.communicator_ends(team);
    team.departure->close(team.outstanding.load(std::memory_order_relaxed) == 0);
    team.comm = MPI_COMM_NULL;
    end_use(team);
    release(team);
    return MPI_SUCCESS;
}

void set_team(MPI_Comm comm, Team& team) {
    PMPI_Comm_set_attr(comm, team_keyval, &team);
    team_epoch.fetch_add(1, std::memory_order_release);
}

// Returns the members' ranks in the world, or nothing if a member is not part of the world.
std::vector<int> world_ranks(MPI_Group group, int size) {
    std::vector<int> local(static_cast<std::size_t>(size));
    std::vector<int> world(local.size());
    std::iota(local.begin(), local.end(), 0);
    PMPI_Group_translate_ranks(group, size, local.data(), runtime().world_group, world.data());
    const bool all = std::find(world.begin(), world.end(), MPI_UNDEFINED) == world.end();
    return all ? world : std::vector<int>{};
}

// What each rank tells the others when a communicator is made.
struct Introduction {
    static constexpr std::int32_t after_loss = -2;
    std::int32_t tag;      // for small messages to it; negative: it cannot take part, after_loss: and why
    std::uint32_t number;  // its number of the communicator (runtime/departure.h)
};

// Makes the team of `comm`. If any rank cannot take part, or the host's MPI cannot tell the ranks of each
// other, `comm` gets the shared record. Collective over `comm`. The ranks talk on `talk`, which has the same
// ranks and returns its errors.
void give_team(MPI_Comm comm, MPI_Comm talk, int rank, const std::vector<int>& members) {
    auto team = std::make_unique<Team>();
    team->comm = comm;
    team->rank = rank;
    team->size = static_cast<int>(members.size());
    team->of_world = comm == MPI_COMM_WORLD;
    const int tag = team->small_messages.take_tag();
    const CommunicatorInTheMaking making;
    const Introduction mine{any_loss.load(std::memory_order_relaxed) ? Introduction::after_loss : tag,
                            making.number()};
    std::vector<Introduction> all(members.size(), Introduction{-1, 0});
    const bool told =
        PMPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, talk) == MPI_SUCCESS;
    const auto can = [](const Introduction& one) { return one.tag >= 0; };
    const auto lost = [](const Introduction& one) { return one.tag == Introduction::after_loss; };
    if (!all_know(talk, told && std::all_of(all.begin(), all.end(), can)))
        return set_team(comm, shared_record(std::any_of(all.begin(), all.end(), lost) ? HostReason::lost
                                                                                      : HostReason::no_team));
    std::vector<SmallPeer> peers;
    std::vector<Departure::Member> ranks;
    for (std::size_t i = 0; i < all.size(); ++i) {
        peers.push_back({members[i], all[i].tag});
        ranks.push_back({members[i], all[i].number});
    }
    team->small_messages.address(std::move(peers));
    // The number is unique in the job. The world's team is the first one.
    team->id = static_cast<std::uint64_t>(members.front()) << 32 | all.front().number;
    team->departure = std::make_unique<Departure>(making.number(), std::move(ranks));
    team->departure->serve(*team);
    for (const Part& part : parts)
        if (part.team_made != nullptr) part.team_made(*team, members);
    set_team(comm, *team.release());
}

offpath_status_t create(const Team& team, std::uint64_t id, offpath_team_h* made) {
    std::vector<std::uint32_t> ranks;
    for (const SmallPeer& peer : team.small_messages.peers())
        ranks.push_back(static_cast<std::uint32_t>(peer.world_rank));
    return offpath_team_create(runtime().context, ranks.data(), static_cast<std::uint32_t>(ranks.size()), id,
                               made);
}

// Makes the number of a team that exists beside another one. The second-highest bit separates these numbers
// from give_team's. Two of them are likely to be equal only if about 2^31 such teams exist at a time.
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

Team& look_up_team(MPI_Comm comm) {
    const std::uint64_t now = team_epoch.load(std::memory_order_acquire);
    void* value = nullptr;
    int found = 0;
    PMPI_Comm_get_attr(comm, team_keyval, static_cast<void*>(&value), &found);
    Team* team =
        found != 0 && value != nullptr ? static_cast<Team*>(value) : &shared_record(HostReason::foreign);
    known_team(comm) = {comm, team, now};
    return *team;
}

Team& own_team(MPI_Comm comm) {
    Team& shared = find_team(comm);
    if (shared.departure != nullptr || shared.alone) return shared;
    auto team = std::make_unique<Team>();
    team->comm = comm;
    team->reason = shared.reason;
    team->alone = true;
    PMPI_Comm_rank(comm, &team->rank);
    PMPI_Comm_size(comm, &team->size);
    Team& made = *team;
    set_team(comm, *team.release());
    return made;
}

void retain(Team& team) {
    team.references.fetch_add(1, std::memory_order_relaxed);
}

void release(Team& team) {
    if (team.references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    forget_losses(team);
    delete &team;
}

void end_use(Team& team) {
    if (team.users.fetch_sub(1, std::memory_order_acq_rel) != 1 || team.of_world || !active()) return;
    if (team.handle != nullptr) offpath_team_destroy(team.handle);
}

offpath_status_t device_team(Team& team, offpath_team_h* made) {
    offpath_status_t status = OFFPATH_OK;
    if (team.handle == nullptr)
        status = team.of_world ? offpath_team_world(runtime().context, &team.handle)
                               : create(team, team.id, &team.handle);
    *made = team.handle;
    return status;
}

offpath_team_h make_team_beside(const Team& team, std::uint64_t number) {
    offpath_team_h made = nullptr;
    create(team, id_beside(team.id, number), &made);
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
    if (team.departure == nullptr || team.of_world) return false;
    team.freed = *comm;
    if (team.messages.fetch_sub(1, std::memory_order_acq_rel) == 1) return false;
    *comm = MPI_COMM_NULL;
    return true;
}

void communicator_created(MPI_Comm comm) {
    if (!active() || comm == MPI_COMM_NULL) return;
    const NewErrorsReturned errors_returned(comm);
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
        give_team(comm, comm, rank, members);
    }
    PMPI_Group_free(&group);
}

int communicator_created(MPI_Comm from, MPI_Comm* comm) {
    return unless_no_agreement(from, [&] {
        communicator_created(*comm);
        return MPI_SUCCESS;
    });
}

void open_communicators() {
    set_up_shared_records();
    PMPI_Comm_create_keyval(on_copy_team, on_delete_team, &team_keyval, nullptr);
    PMPI_Comm_group(MPI_COMM_WORLD, &runtime().world_group);
    set_team(MPI_COMM_SELF, shared_record(HostReason::one_rank));
    open_small_messages();
    std::vector<int> everybody(static_cast<std::size_t>(runtime().size));
    std::iota(everybody.begin(), everybody.end(), 0);
    try {
        give_team(MPI_COMM_WORLD, runtime().service, runtime().rank, everybody);
    } catch (const NoAgreement& why) {
        say_no_agreement(MPI_COMM_WORLD, why);
        PMPI_Abort(MPI_COMM_WORLD, 2);
    }
}

// MPI_Finalize has taken the attribute of MPI_COMM_SELF away by now.
void close_communicators() {
    PMPI_Comm_delete_attr(MPI_COMM_WORLD, team_keyval);
    close_small_messages();
    PMPI_Comm_free_keyval(&team_keyval);
    PMPI_Group_free(&runtime().world_group);
}

}  // namespace offpath::mpi
