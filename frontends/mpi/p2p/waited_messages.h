// Waited messages: which large messages the program only waits for, and which of them use the host's MPI
// alone.
//
// The device adds a cost at the start and the end of a message. That pays off if one of the two programs
// computes meanwhile. Each end therefore observes, for each peer and tag, whether it was outside MPI while a
// large message was outstanding. When this changes, the receiver tells the sender, by a message of the host's
// MPI on payload_comm(). If both ends have only waited lately, the sender may use the host's MPI, without a
// header. It does so if the message is the only one outstanding. If there are several, as when two ranks
// exchange messages, both ways are tried (route_trial.h). If one of the programs computes, the device is
// used where trials show that the program's steps are shorter with it (step_trial.h).
//
// When a program begins to compute, the choice is wrong for a message or two. Data are right in any case: a
// receive accepts a message of the host's MPI as well as a header.
//
// Threads: not used with MPI_THREAD_MULTIPLE, where a call must not wait inside the host's MPI.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "message_history.h"
#include "runtime/outstanding_counts.h"
#include "runtime/time_in_mpi.h"

namespace offpath::mpi::p2p {

struct Pairs;
struct Parcel;

// For larger messages the device's start and end are a small share, and receives would need much memory.
inline constexpr std::size_t most_bytes_by_host = std::size_t{8} << 20;

// Whether messages are observed and may use the host's MPI alone. The same on all ranks, except for ranks
// with several threads.
bool watches_waits();

// The host's part of the parcel is done.
void is_moved_no_longer(Parcel& parcel);

// Called at the beginning and the end of the attachment; the end is collective.
void open_waits();
void close_waits();
void begin_watching(Pairs& pairs);
void end_watching(Pairs& pairs);

// The sender's choice for a message that reaches the switch-over.
bool is_the_hosts(Pairs& pairs, int peer, int tag, std::size_t bytes);
// Whether both ends have only waited for such messages lately, as far as this end knows.
bool only_waits(Pairs& pairs, int peer, int tag);
// Processes what the other ends have reported since. `ask`: asks the host's MPI, too, which may then answer
// other ranks as well. No call but one that waits may do that: where a connection carries data and answers,
// as TCP does, an answer to a message that comes before this rank's own message leaves that one's answer
// behind the data, and two ranks that exchange messages stay one transfer apart for good.
void hear(bool ask = false);
// Tells the sender whether this end only waits, if that has changed.
void tell_habit(const Pairs& pairs, int peer, int tag, MessageHistory::Received& watch);

// Whether the next large message with this source and tag will come through the host's MPI.
bool comes_by_host(Pairs& pairs, int peer, int tag);

// If nothing else is outstanding, a blocking call whose large message is the host's can be the host's own
// call, without a parcel. When it has succeeded, it is recorded: the program has only waited for this
// message, which was the only one.
bool may_be_the_hosts_call();
// `elapsed_ns`: the time in the host's call.
void sent_in_the_hosts_call(Pairs& pairs, int peer, int tag, std::size_t bytes, std::uint64_t elapsed_ns);
void received_in_the_hosts_call(Pairs& pairs, int peer, int tag, std::uint64_t elapsed_ns);

// For a receive with known source and tag, before it is posted: sets `by_host`, `agreed` and `beneath`.
void expect(Parcel& parcel);

// A receive was too short for its message. From then on messages use the device, and steps are not tried with
// the host's MPI: within a node, Open MPI 4.1 writes beyond receives that are too short for a long message.
void cut_off(Parcel& parcel);

// The life of a large message: it is posted, any number of calls check it, and it ends.
void posted(Parcel& parcel);
void stay(Parcel& parcel);  // in the call that posted it
void look_at(Parcel& parcel);
void leave(Parcel& parcel);
void ended(Parcel& parcel);

// For the time of a call that posts or waits: meanwhile the program does not compute.
class InCall {
  public:
    InCall() {
        if (outstanding.large != 0) enter();
    }
    ~InCall() {
        if (entered_) leave();
    }
    InCall(const InCall&) = delete;
    InCall& operator=(const InCall&) = delete;

  private:
    void enter();
    void leave();

    presence::Inside inside_;
    bool entered_ = false;
};

// For the time of a call that tests `requests` or waits for them; examines the array before and after the
// call.
class Look {
  public:
    Look(int count, const MPI_Request* requests) : count_(count), requests_(requests) {
        if (outstanding.large != 0) enter();
    }
    ~Look() {
        if (entered_) leave_rest();
    }
    Look(const Look&) = delete;
    Look& operator=(const Look&) = delete;

  private:
    void enter();
    void leave_rest();

    InCall in_call_;
    int count_;
    const MPI_Request* requests_;
    bool entered_ = false;
};

}  // namespace offpath::mpi::p2p
