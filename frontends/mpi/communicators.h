// Teams: the device's view of communicators.
//
// Every intra-communicator of two or more ranks of the job has a team. The ranks agree on it when the
// communicator is made, and it is kept as an attribute. All other communicators share records that say why
// they stay on the host. MPI_Comm_free ends the team through the attribute's delete callback; outstanding
// operations hold a reference to it.
//
// Threads: any. Look-up is one comparison while a thread uses one communicator.
#pragma once

#include <mpi.h>
#include <offpath/offpath.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "collectives/small_messages.h"
#include "selection.h"

namespace offpath::mpi {

struct Neighbours;
struct TeamTuning;
struct WindowMeetings;
namespace p2p {
struct Pairs;
}

struct Team {
    Team();
    ~Team();

    static constexpr int rank_unknown = -1;

    offpath_team_h handle = nullptr;  // null: calls stay on the host, `reason` says why
    HostReason reason = HostReason::none;
    std::atomic<MPI_Comm> comm{MPI_COMM_NULL};  // the user's; null after it was freed
    std::uint64_t id = 0;                       // agreed on by its ranks; 0: of the world
    SmallMessages small_messages;               // of pairs of ranks that decide against the device
    p2p::Pairs* pairs = nullptr;                // null: the host's MPI carries all messages
    std::unique_ptr<Neighbours> neighbours;     // in its process topology, after the first query
    int rank = rank_unknown;
    int size = 0;
    bool of_world = false;                    // the context owns the handle
    std::atomic<std::uint32_t> under_way{0};  // operations that are not done
    std::atomic<std::uint64_t> persistent_made{
        0};                               // persistent operations, in the order that all ranks make them in
    std::atomic<std::uint32_t> users{1};  // the communicator and its persistent requests
    std::atomic<std::uint32_t> messages{1};    // persistent ones that use the communicator, and the user
    MPI_Comm freed = MPI_COMM_NULL;            // freed by the user; persistent messages or a vote keep it
    std::unique_ptr<TeamTuning> tuning;        // null where the handle is
    std::unique_ptr<WindowMeetings> meetings;  // of windows made from the communicator; null: none
    std::atomic<std::uint32_t> references{1};  // one of the communicator, and one per outstanding operation
};

// Never null. `comm` must not be MPI_COMM_NULL.
Team& find_team(MPI_Comm comm);

void retain(Team& team);
void release(Team& team);
// Ends one use of the team. The last one ends the device's team.
void end_use(Team& team);

// A second team of the device for the same ranks, whose operations are ordered separately. `number` must be
// unique among the second teams of `team` and the same on all ranks. Local; null where it cannot be made.
offpath_team_h make_team_beside(const Team& team, MPI_Comm comm, std::uint64_t number);

// A persistent message may be started after the user has freed its communicator. The communicator then lives
// until its last persistent message ends.
void begin_message(Team& team);
void end_message(Team& team);
// The user frees the communicator. True: messages keep it, and the handle has been set to null.
bool keep_for_messages(MPI_Comm* comm);

// Whether all ranks pass true. Collective over `comm`.
bool all_agree(MPI_Comm comm, bool mine);

// Call it for a new communicator before the user sees it. Collective over that communicator.
void communicator_created(MPI_Comm comm);

// Start and end of the attachment: the keyval, and the team of MPI_COMM_WORLD.
void open_communicators();
void close_communicators();

}  // namespace offpath::mpi
