#include "openmp/mpi/communicators.h"

#include "mpi/runtime/mixed_teams.h"
#include "openmp/mpi/errors.h"
#include "openmp/mpi/handles.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>

namespace offpath::region_mpi {

namespace teams = mpi::mixed_teams;

namespace {

// For the life of the process: the context ends their teams.
Communicator* world = nullptr;
Communicator* self = nullptr;
Handles<MPI_Comm, Communicator, true> handles;

struct Known {
    offpath_team_h messages = nullptr;
    std::uint64_t windows = 0;
};
struct MixedTeams {
    std::mutex mutex;
    std::map<std::vector<std::uint32_t>, Known> by_ranks;
};
MixedTeams mixed;

offpath_team_h create(const std::vector<std::uint32_t>& members, std::uint64_t id) {
    offpath_team_h team = nullptr;
    check(
        offpath_team_create(context(), members.data(), static_cast<std::uint32_t>(members.size()), id, &team),
        "the team of a communicator");
    return team;
}

offpath_team_h create_mixed(const std::vector<std::uint32_t>& ranks, std::uint64_t number) {
    return create(teams::members(ranks), teams::id(teams::TeamKind::mixed, ranks, number));
}

std::uint32_t own_rank() {
    return world->rank;
}

std::unique_ptr<Communicator> make(std::vector<std::uint32_t> ranks, std::uint32_t mine,
                                   std::uint64_t number) {
    auto made = std::make_unique<Communicator>();
    made->rank = static_cast<std::uint32_t>(std::find(ranks.begin(), ranks.end(), mine) - ranks.begin());
    made->size = static_cast<std::uint32_t>(ranks.size());
    made->id = teams::id(teams::TeamKind::devices, ranks, number);
    made->devices = SharedTeam(create(teams::devices(ranks), made->id), offpath_team_destroy);
    made->ranks = std::move(ranks);
    return made;
}

// What tells the children of a communicator apart from all other communicators.
std::uint64_t number_of_child(Communicator& parent) {
    return parent.id * 0x9e3779b97f4a7c15 + ++parent.children;
}

struct Choice {
    int color, key;
};

// The ranks with this rank's color, by key. Collective.
std::vector<std::uint32_t> split(const Communicator& parent, Choice mine) {
    std::vector<Choice> all(parent.size);
    offpath_request_h request = nullptr;
    check(offpath_iallgather(parent.devices.get(), &mine, all.data(), sizeof mine, &request), "the colors");
    const offpath_status_t status = offpath_request_wait(request);
    offpath_request_free(request);
    check(status, "the colors");
    std::vector<std::uint32_t> members;
    for (std::uint32_t rank = 0; rank < parent.size; ++rank)
        if (all[rank].color == mine.color) members.push_back(rank);
    std::stable_sort(members.begin(), members.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return all[a].key < all[b].key; });
    for (std::uint32_t& member : members)
        member = parent.ranks[member];
    return members;
}

MPI_Comm handle_of_child(Communicator& parent, std::unique_ptr<Communicator> child) {
    child->errors_return = parent.errors_return.load();
    return handles.make(child.release());
}

}  // namespace

std::unique_ptr<Communicator> make_communicator(std::vector<std::uint32_t> ranks, std::uint64_t number) {
    return make(std::move(ranks), own_rank(), number);
}

MPI_Comm duplicate(Communicator& parent) {
    return handle_of_child(parent, make_communicator(parent.ranks, number_of_child(parent)));
}

offpath_team_h mixed_team(const Communicator& communicator) {
    const std::lock_guard lock(mixed.mutex);
    offpath_team_h& team = mixed.by_ranks[communicator.ranks].messages;
    if (team == nullptr) team = create_mixed(communicator.ranks, 0);
    return team;
}

SharedTeam new_mixed_team(const Communicator& communicator) {
    const std::lock_guard lock(mixed.mutex);
    const std::uint64_t number = ++mixed.by_ranks[communicator.ranks].windows;
    return {create_mixed(communicator.ranks, number), offpath_team_destroy};
}

void open_communicators(std::uint32_t rank, std::uint32_t size) {
    std::vector<std::uint32_t> everybody(size);
    std::iota(everybody.begin(), everybody.end(), 0);
    world = make(std::move(everybody), rank, 0).release();
    self = make({rank}, rank, 1).release();
    for (Communicator* each : {world, self}) {
        each->takes_hosts = true;
        (void)mixed_team(*each);
    }
}

Communicator& communicator_of(MPI_Comm handle) {
    if (!attached())
        throw MpiError{MPI_ERR_OTHER,
                       "the device takes no part in MPI: it does between MPI_Init and MPI_Finalize of a "
                       "program that `offpath run` started and whose ranks all have a device"};
    if (handle == MPI_COMM_WORLD) return *world;
    handle = own(handle);
    if (handle == MPI_COMM_WORLD) return *world;
    if (handle == MPI_COMM_SELF) return *self;
    if (Communicator* const made = handles.find(handle)) return *made;
    throw MpiError{MPI_ERR_COMM,
                   "it is no communicator of target regions: they know MPI_COMM_WORLD, MPI_COMM_SELF and "
                   "those that regions have made of these"};
}

}  // namespace offpath::region_mpi

using namespace offpath::region_mpi;

OFFPATH_EXPORT int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
    return in_call("MPI_Comm_dup", comm, [&](Communicator& parent) { *made = duplicate(parent); });
}

OFFPATH_EXPORT int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* made) {
    return in_call("MPI_Comm_split", comm, [&](Communicator& parent) {
        if (color < 0 && color != MPI_UNDEFINED)
            throw MpiError{MPI_ERR_ARG, "the color is " + std::to_string(color)};
        const std::vector<std::uint32_t> members = split(parent, {color, key});
        const std::uint64_t number = number_of_child(parent);
        *made = color == MPI_UNDEFINED ? MPI_COMM_NULL
                                       : handle_of_child(parent, make_communicator(members, number));
    });
}

OFFPATH_EXPORT int MPI_Comm_free(MPI_Comm* comm) {
    return in_call("MPI_Comm_free", *comm, [&](Communicator& communicator) {
        if (communicator.takes_hosts)
            throw MpiError{MPI_ERR_COMM, "a predefined communicator cannot be freed"};
        handles.forget(*comm);
        delete &communicator;
        *comm = MPI_COMM_NULL;
    });
}
