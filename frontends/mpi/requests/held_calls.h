// Held calls: collectives that the program starts while the ranks of their communicator agree on where to
// leave a lost device (runtime/departure.h). Each has its request at once. After the decision they start on
// the host's MPI, in the order of the calls. Those that other ranks have started on the device join their
// second run, or end with an error.
//
// A non-blocking collective of the host's that is called behind a held one is held too, so that all ranks
// start the host's in the same order. Before calls that cannot be held, a rank waits a while for the
// decision. It must not wait longer, because a rank that knows of no loss may already wait in the host's
// call. Then it gives its held calls up, because another rank may need them to get to that call. Open MPI and
// MPICH tell their blocking collectives and the non-blocking ones apart, whatever the order.
//
// A held call is given up, too, after the time in which silence means a loss (base/patience.h): a rank that
// has the call outstanding on the device may sit in the host's MPI, and answer nothing.
//
// Threads: any. While no call is held, all of this costs a load or two.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <functional>

#include "offloaded_requests.h"
#include "runtime/departure.h"

namespace offpath::mpi {

// Where a call goes that would go to the device, on all ranks. Sets `number`, for hold_back: 0 where the call
// is the host's whatever the decision.
Passage pass(Team& team, Op op, std::uint64_t* number);
// The same for a call that may wait for all ranks: it waits for the decision.
Passage pass_settled(Team& team, Op op, std::uint64_t* number);
// The same for a start of a persistent collective, of which `departure` decides. It is held back by itself.
Passage pass_persistent(const Team& team, Departure& departure, Op op, std::uint64_t* number);
// Whether a non-blocking call of the host's must be held back.
bool must_hold(const Team& team);

// Starts the call on the host's MPI. Null for a persistent collective, which is prepared for messages
// instead.
using StartOnHost = std::function<int(MPI_Request* started)>;
// Prepares an operation without a device for a second run, or where its start is the host's for its only one
// (has_no_device(), goes_to_host()).
using PrepareSecondRun = std::function<offpath_status_t(OffloadedRequest& operation)>;

// Makes the user's request. Returns what the MPI call returns.
int hold_back(OffloadedRequest& operation, std::uint64_t number, StartOnHost start, PrepareSecondRun prepare,
              MPI_Request* request);

inline std::atomic<std::uint32_t> teams_holding{0};
// Starts, or ends, the calls for which there is a decision. Both poll() (offloaded_requests.h) and
// p2p::poll() (p2p/outstanding.h) call it.
void start_held_calls();

// Call it before a collective of the host's MPI: waits a while if ranks are about to decide.
void before_collective(Team& team);
void before_collective(MPI_Comm comm);

// In MPI_Finalize, when this rank has no operations left: answers the other ranks until they have none
// either.
void answer_until_all_end();

}  // namespace offpath::mpi
