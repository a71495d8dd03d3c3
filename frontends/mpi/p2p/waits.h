// Waits: which large messages are only waited for, and which of those go by the host's MPI alone.
//
// The device costs a message something at its start and its end. That pays where one of the two programs
// computes meanwhile. Each end therefore watches, for each peer and tag, whether it was outside MPI while a
// large message was under way. The receiver tells the sender, by a message of the host's MPI on
// payload_comm(), when this changes; what both ends have only waited for lately, the sender may send by the
// host's MPI, without a header. It does so with a message that is the only one under way; where there are
// several, as when two ranks exchange, both ways are tried (trial.h).
//
// It is wrong by a message or two when a program begins to compute, and data are right whoever is wrong: a
// receive takes a message of the host's MPI as well as a header.
//
// Threads: not used with MPI_THREAD_MULTIPLE, where a call may not sit in the host's MPI.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>

#include "../rma/presence.h"
#include "watches.h"

namespace offpath::mpi::p2p {

struct Pairs;
struct Parcel;

// Beyond it the device's start and end are a small share, and receives need memory for what may come.
inline constexpr std::size_t most_bytes_by_host = std::size_t{8} << 20;

// Whether anything is watched, and messages may go so. The same on all ranks, but for those with threads.
bool watches_waits();

// The attachment's beginning and end; the end is collective.
void open_waits();
void close_waits();
void begin_watching(Pairs& pairs);
void end_watching(Pairs& pairs);

// The sender's choice for a message of at least the switch-over's bytes.
bool is_the_hosts(Pairs& pairs, int peer, int tag, std::size_t bytes);
// What the other ends have told since.
void hear();
// Of a receive with a known source and tag, before it is posted: sets `by_host`, `agreed` and `beneath`.
void expect(Parcel& parcel);

// A receive was too short for its message. Where that happens messages are the device's: Open MPI 4.1 writes
// behind receives within a node that are too short for a long message of its own.
void cut_off(Parcel& parcel);

inline std::atomic<std::uint32_t> large_under_way{0};  // sends and receives of this process

// A large message's life: posted, then any number of calls that look at it, then ended.
void posted(Parcel& parcel);
void stay(Parcel& parcel);  // in the call that posted it
void look_at(Parcel& parcel);
void leave(Parcel& parcel);
void ended(Parcel& parcel);

// Around a call that posts or waits: a program that is in it does not compute.
class InCall {
  public:
    InCall() {
        if (large_under_way.load(std::memory_order_relaxed) != 0) enter();
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

// Around a call that tests or waits for `requests`, before and after which the array is looked at.
class Look {
  public:
    Look(int count, const MPI_Request* requests) : count_(count), requests_(requests) {
        if (large_under_way.load(std::memory_order_relaxed) != 0) enter();
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
