// Teams: the device's view of communicators.
//
// Every intra-communicator of two or more ranks of the job has a team, agreed on when the communicator is
// made and kept as an attribute of it. All other communicators have a shared record that says why they stay
// on the host. MPI_Comm_free ends the team through the attribute's delete callback; operations that are under
// way hold a reference to it.
//
// Threads: any. Look-up is one comparison while a thread keeps to one communicator.
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
    std::atomic<MPI_Comm> comm{MPI_COMM_NULL};  // the user's; null again once it was freed
    std::uint64_t id = 0;                       // of the handle, agreed on by its ranks; 0: of the world
    SmallMessages small_messages;               // of pairs of ranks that decide against the device
    p2p::Pairs* pairs = nullptr;                // null: all messages are the host's
    std::unique_ptr<Neighbours> neighbours;     // of its process topology, once they were asked for
    int rank = rank_unknown;
    int size = 0;
    bool of_world = false;                    // the context owns the handle
    std::atomic<std::uint32_t> under_way{0};  // operations that are not done
    std::atomic<std::uint64_t> persistent_made{
        0};                               // persistent operations, in the order that all ranks make them in
    std::atomic<std::uint32_t> users{1};  // the communicator and its persistent requests
    std::atomic<std::uint32_t> messages{1};    // that use the communicator: persistent ones, and the user's
    MPI_Comm freed = MPI_COMM_NULL;            // by the user, and kept for persistent messages or a vote
    std::unique_ptr<TeamTuning> tuning;        // null where the handle is
    std::unique_ptr<WindowMeetings> meetings;  // of windows that were made of the communicator; null: none
    std::atomic<std::uint32_t> references{1};  // the communicator's one, and one for each operation under way
};

// Never null. `comm` must not be MPI_COMM_NULL.
Team& find_team(MPI_Comm comm);

void retain(Team& team);
void release(Team& team);
// Of one user. With the last one the device's team ends.
void end_use(Team& team);

// A team of the device for the same ranks, whose operations have an order of their own. `number` differs
// among those beside `team` and is the same on all ranks. Local; null where it cannot be made.
offpath_team_h make_team_beside(const Team& team, MPI_Comm comm, std::uint64_t number);

// A persistent message, which may be started when the user has freed its communicator. That ends with the
// last.
void begin_message(Team& team);
void end_message(Team& team);
// The user frees it. True: messages keep it, and the handle is null.
bool keep_for_messages(MPI_Comm* comm);

// Collective over `comm`: whether all its ranks say yes.
bool all_agree(MPI_Comm comm, bool mine);

// A new communicator, before the user sees it. Collective over it.
void communicator_created(MPI_Comm comm);

// At the start and the end of the attachment: the keyval, and the team of MPI_COMM_WORLD. False when that
// failed.
void open_communicators();
void close_communicators();

}  // namespace offpath::mpi
