// Teams: the device's view of communicators.
//
// Every intra-communicator of two or more ranks of the job has a team. The ranks agree on it when the
// communicator is made, by two small collectives of the host's MPI, and it is kept as an attribute. The
// device hears of it at the first call that goes there, so a communicator that offloads nothing costs it
// nothing. All other communicators share records that say why they stay on the host. MPI_Comm_free ends the
// team through the attribute's delete callback; outstanding operations hold a reference to it.
//
// Threads: any. Each thread keeps the teams of the communicators that it used last, so a look-up costs a few
// instructions.
#pragma once

#include <mpi.h>
#include <offpath/offpath.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "runtime/departure.h"
#include "runtime/selection.h"
#include "small_messages.h"

namespace offpath::mpi {

// What a higher room keeps for a team. That room defines the type and says how an object of it ends.
template <typename T>
struct End {
    void (*function)(T*) = nullptr;
    void operator()(T* object) const { function(object); }
};
template <typename T>
using Owned = std::unique_ptr<T, End<T>>;
template <typename T, typename... Arguments>
Owned<T> make_owned(Arguments&&... arguments) {
    return {new T(std::forward<Arguments>(arguments)...), {[](T* object) { delete object; }}};
}

struct Devices;
struct Neighbours;
struct TeamTuning;
struct WindowMeetings;
namespace p2p {
struct Pairs;
}

struct Team {
    static constexpr int rank_unknown = -1;

    // Whether the device serves it. If not, calls stay on the host, and `reason` says why.
    bool served() const { return reason == HostReason::none; }

    offpath_team_h handle = nullptr;  // null until device_team() has made it
    HostReason reason = HostReason::none;
    std::atomic<MPI_Comm> comm{MPI_COMM_NULL};  // the user's; null after it was freed
    std::uint64_t id = 0;                       // agreed on by its ranks; 0: of the world
    SmallMessages small_messages;               // of pairs of ranks that decide against the device
    Owned<p2p::Pairs> pairs;                    // null: the host's MPI carries all messages
    // Of a communicator with the key for remote devices: its messages are with devices (devices/devices.h),
    // and `pairs` is put aside. Otherwise null.
    std::atomic<Devices*> devices{nullptr};
    Owned<Devices> kept_devices;
    Owned<p2p::Pairs> pairs_aside;
    bool alone = false;            // a communicator's own record, without being served
    Owned<Neighbours> neighbours;  // in its process topology, after the first query
    int rank = rank_unknown;
    int size = 0;
    bool of_world = false;                      // the context owns the handle
    std::atomic<std::uint32_t> outstanding{0};  // operations that are not done
    std::atomic<std::uint64_t> persistent_made{
        0};                               // persistent operations, in the order that all ranks make them in
    std::atomic<std::uint32_t> users{1};  // the communicator and its persistent requests
    std::atomic<std::uint32_t> messages{1};    // persistent ones that use the communicator, and the user
    MPI_Comm freed = MPI_COMM_NULL;            // freed by the user; persistent messages or held calls keep it
    std::unique_ptr<Departure> departure;      // null in the shared records
    std::atomic<std::uint32_t> held_calls{0};  // not started yet (requests/held_calls.h)
    Owned<TeamTuning> tuning;                  // null likewise
    Owned<WindowMeetings> meetings;            // of windows made from the communicator; null: none
    std::atomic<std::uint32_t> references{1};  // one of the communicator, and one per outstanding operation
};

// A thread's latest look-ups, by communicator. Valid while `epoch` is team_epoch, which is raised whenever
// what a communicator's handle stands for may have changed.
struct KnownTeam {
    MPI_Comm comm;
    Team* team;
    std::uint64_t epoch;  // 0: none
};
inline constexpr std::size_t known_teams_bits = 3;
inline thread_local constinit std::array<KnownTeam, std::size_t{1} << known_teams_bits> known_teams{};
inline std::atomic<std::uint64_t> team_epoch{1};

inline KnownTeam& known_team(MPI_Comm comm) {
    std::uint64_t bits = 0;  // MPI_Comm is a pointer in some MPI libraries and an integer in others
    std::memcpy(&bits, &comm, sizeof(MPI_Comm));  // NOLINT(bugprone-sizeof-expression)
    return known_teams[(bits * 0x9E3779B97F4A7C15U) >> (64 - known_teams_bits)];
}

// Asks the host's MPI, and keeps the answer.
Team& look_up_team(MPI_Comm comm);

// The communicator's own record, which replaces a shared one. Local.
Team& own_team(MPI_Comm comm);

// `comm` must not be MPI_COMM_NULL.
inline Team& find_team(MPI_Comm comm) {
    const KnownTeam& known = known_team(comm);
    if (known.comm == comm && known.epoch == team_epoch.load(std::memory_order_acquire)) return *known.team;
    return look_up_team(comm);
}

void retain(Team& team);
void release(Team& team);
// Ends one use of the team. The last one ends the device's team.
void end_use(Team& team);

// The device's team, which the first call makes. `team` must be served. Local: the device keeps messages of
// ranks that were earlier. Call it in collectives of the communicator, which are ordered.
offpath_status_t device_team(Team& team, offpath_team_h* made);

// A second team of the device for the same ranks, whose operations are ordered separately. `number` must be
// unique among the second teams of `team` and the same on all ranks. Local; null where it cannot be made.
offpath_team_h make_team_beside(const Team& team, std::uint64_t number);

// A persistent message may be started after the user has freed its communicator. The communicator then lives
// until its last persistent message ends.
void begin_message(Team& team);
void end_message(Team& team);
// The user frees the communicator. True: messages keep it, and the handle has been set to null.
bool keep_for_messages(MPI_Comm* comm);

// Call it for a new communicator before the user sees it. Collective over that communicator. If the ranks
// cannot agree, it stays on the host's MPI, and its error handler does not hear of that. May throw
// NoAgreement (combined_words.h).
void communicator_created(MPI_Comm comm);
// The same for a call of the program on `from`, which has made it. Returns what that call returns.
int communicator_created(MPI_Comm from, MPI_Comm* comm);

// Start and end of the attachment: the keyval, and the team of MPI_COMM_WORLD.
void open_communicators();
void close_communicators();

}  // namespace offpath::mpi
