// Sendrecv requests: a receive and a send behind one request, for MPI_Isendrecv and MPI_Isendrecv_replace.
// Each of the two may be a parcel or a request of the host's MPI. The user's request is a generalized one.
// poll() completes it when both have ended; its status is the receive's.
//
// Waiting calls must progress it, so it counts as an attended parcel. Threads: any.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>

#include "runtime/staging.h"

namespace offpath::mpi::p2p {

// Takes over both requests, and the send buffer if that is our memory.
int join(MPI_Request receive, MPI_Request send, StagingBlock sent_from, MPI_Request* request);

inline std::atomic<std::uint32_t> outstanding_sendrecvs{0};
inline bool any_sendrecvs() {
    return outstanding_sendrecvs.load(std::memory_order_relaxed) != 0;
}
// Progresses all of them once. Must not hold the lock.
void poll_sendrecvs();

}  // namespace offpath::mpi::p2p
