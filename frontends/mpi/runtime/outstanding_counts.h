// Outstanding: counts of the front end's outstanding work, in one cache line. A call reads them first. If
// they show that it concerns none of this work, it calls the host's MPI and costs only these few loads.
//
// Only the files named beside a count change it. Threads: any. The loads are relaxed: a thread that
// may use a request has synchronized with the thread that made it.
#pragma once

#include <atomic>
#include <cstdint>

#include "letters.h"

namespace offpath::mpi {

class OutstandingCount {
  public:
    // Both return the count before the change.
    std::uint32_t raise() { return count_.fetch_add(1, std::memory_order_relaxed); }
    std::uint32_t lower() { return count_.fetch_sub(1, std::memory_order_relaxed); }
    operator std::uint32_t() const { return count_.load(std::memory_order_relaxed); }

  private:
    std::atomic<std::uint32_t> count_{0};
};

struct alignas(64) Outstanding {
    OutstandingCount requests;  // offloaded ones that are not done (requests/offloaded_requests.h)
    // Started and not yet seen to be done (requests/persistent_requests.h).
    OutstandingCount persistent_active;
    OutstandingCount followed;  // requests whose cost is measured (tuning/samples.h)
    // Communicators with messages for the device (p2p/communicator_state.h) or with devices (devices/key.h).
    OutstandingCount pairs;
    OutstandingCount parcels;  // registered ones (p2p/parcel.h)
    // Parcels and sendrecv requests that need progress by this process (p2p/parcel.h,
    // p2p/sendrecv_requests.h).
    OutstandingCount attended;
    OutstandingCount large;  // large messages that are watched (p2p/waited_messages.h)
    OutstandingCount timed;  // 1: the time inside MPI is counted (time_in_mpi.h)
    // Of these, those that the host's MPI moves, or seems to. Only its calls move their bytes, so a thread
    // that waits for anything does not sleep (backoff.h).
    OutstandingCount moved_by_host;
    // Windows that have ended (rma/windows.h). A handle may belong to another window afterwards.
    OutstandingCount windows_ended;
    // Calls of MPI while their time is counted (time_in_mpi.h). They stand here because another line would
    // often be out of the cache: ranks of one core use it in turn.
    std::uint32_t calls_entered = 0;
    std::uint64_t entered_ticks = 0;  // the outermost call
    std::uint64_t inside_ticks = 0;
};
static_assert(sizeof(Outstanding) == 64);

inline Outstanding outstanding;

// Whether no message can be the device's, and nothing needs progress while this process sits in the host's
// MPI.
inline bool messages_are_the_hosts() {
    const Outstanding& o = outstanding;
    return (o.pairs | o.attended | o.timed) == 0 && !has_letter();
}

// The same for a call that waits: no letter may come meanwhile about operations of the device.
inline bool waited_messages_are_the_hosts() {
    return messages_are_the_hosts() && outstanding.requests == 0;
}

// Whether every request is the host's MPI's alone.
inline bool requests_are_the_hosts() {
    const Outstanding& o = outstanding;
    return (o.requests | o.persistent_active | o.followed | o.parcels | o.attended | o.large | o.timed) ==
               0 &&
           !has_letter();
}

}  // namespace offpath::mpi
