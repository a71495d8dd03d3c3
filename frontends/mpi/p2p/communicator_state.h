// Pairs: a communicator's state for point-to-point messages: which ranks take part, how many messages of each
// peer and tag there were, which receives with wildcards are pending, and which messages probes took from the
// host's MPI.
//
// Ownership: the communicator's team; outstanding operations hold the team. Threads: under the lock (lock.h).
#pragma once

#include <mpi.h>
#include <offpath/offpath.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "communicators/communicators.h"
#include "header.h"
#include "message_numbers.h"
#include "runtime/runtime.h"
#include "waited_messages.h"

namespace offpath::mpi::p2p {

struct Parcel;

// A message that a probe took from the host's MPI. Those of one source are in order, and older than all that
// the host's MPI still has from it.
struct Extracted {
    int source = 0, tag = 0;
    MPI_Message message = MPI_MESSAGE_NULL;  // null: a header, which has been read
    MPI_Status status{};
    Header header;
};

inline bool matches(int wanted_source, int wanted_tag, int source, int tag) {
    return (wanted_source == MPI_ANY_SOURCE || wanted_source == source) &&
           (wanted_tag == MPI_ANY_TAG || wanted_tag == tag);
}

struct Pairs {
    static constexpr int not_part = -1;

    std::uint64_t id = 0;         // of the communicator in the job
    int own_rank = 0;             // in the communicator
    std::vector<int> world_rank;  // by rank; not_part: messages with it are the host's
    MessageNumbers sent, received;
    std::uint32_t unnumbered = 0;      // messages sent whose tag has no number
    std::vector<Parcel*> wild;         // receives with a wildcard, not known to be matched
    std::deque<Extracted> extracted;   // by probes
    std::uint32_t short_receives = 0;  // outstanding ones (short_receives.h)
    MessageHistory watches;

    bool takes_part(int rank) const {
        return rank >= 0 && rank < static_cast<int>(world_rank.size()) &&
               world_rank[static_cast<std::size_t>(rank)] != not_part;
    }
    int world(int rank) const { return world_rank[static_cast<std::size_t>(rank)]; }
    // Whether a receive from `source` could get a header.
    bool may_get_header(int source) const { return source == MPI_ANY_SOURCE || takes_part(source); }
};

// Gives the team of a new communicator its state, unless no two of its ranks take part: alike on all ranks.
// `members`: world ranks.
void give_pairs(Team& team, const std::vector<int>& members);

// The communicator's pairs; null when the host's MPI carries all its messages, and `team` is then not set.
inline Pairs* find_pairs(MPI_Comm comm, Team** team) {
    if (outstanding.pairs == 0 || !active() || comm == MPI_COMM_NULL) return nullptr;
    Team& found = find_team(comm);
    *team = &found;
    return found.pairs.get();
}

// Start and end of the attachment. Opening is collective.
void open_pairs();
void close_pairs();

// The device's team of all ranks, which carries the messages.
offpath_team_h world_team();
// A communicator of our own with world ranks, for messages announced by headers of kind by_host. None of
// these is of a rank to itself. So it also has the messages that stand in for something on this rank, from
// the rank to itself. MPICH has other code for messages on communicators of one rank, which takes requests
// from a pool that other threads use meanwhile.
MPI_Comm payload_comm();
enum class StandIn : int { completed = 0, unpacked = 1, matched = 2 };  // their tags
// Payloads on payload_comm() use tags below this value; notices use the value itself.
int payload_tags();
// The largest tag that a user may use.
int largest_tag();

}  // namespace offpath::mpi::p2p
