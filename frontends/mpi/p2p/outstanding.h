// What the calls check first: whether any point-to-point operation is outstanding. Any thread.
#pragma once

#include <span>

#include "runtime/counter.h"
#include "runtime/outstanding_counts.h"

namespace offpath::mpi {
struct Team;
}

namespace offpath::mpi::p2p {

// Whether a request may belong to a parcel.
inline bool any_registered() {
    return outstanding.parcels != 0;
}
// Whether parcels need progress by the calls that wait.
inline bool must_attend() {
    return outstanding.attended != 0;
}

// Whether a waiting call must poll instead of waiting inside the host's MPI: parcels need progress, or a
// letter may come about operations of the device that are outstanding (runtime/departure.h).
inline bool must_poll() {
    return (outstanding.attended | outstanding.requests) != 0;
}

// Progresses a few attended parcels, and answers letters (runtime/letters.h).
void poll();

// Called in MPI_Comm_disconnect: waits for the operations that no call waits for.
void finish_of(const Team& team);
// Called in MPI_Finalize: waits until all messages that no call waits for have been sent.
void finish_all();

// Prints the summary's second line on rank 0 if there is anything to report; then true. Collective over the
// world.
bool print_summary();
std::span<const Counter> counters();

}  // namespace offpath::mpi::p2p
