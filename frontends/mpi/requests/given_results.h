// Given results: after the loss of a device, a rank that has the short result of an allreduce, a
// broadcast or an allgather sends its copy of it
// to the ranks that have none (runtime/departure.h, runtime/kept_results.h).
//
// The messages have a lane of their own. Each begins with the number of its collective, because a receiver
// may have given an earlier one up.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "offloaded_requests.h"

namespace offpath::mpi {

// The operation has ended with its result, which is where the device has put it. Keeps a copy if others may
// want it.
void keep_result(const OffloadedRequest& operation);

// What a giver sends: for the receiver's size, too.
std::size_t given_bytes(const OffloadedRequest& operation);
// Takes the result out of such a message. False: it is that of another collective.
bool take_given(const OffloadedRequest& operation, const std::vector<std::byte>& message);

// The rank of the communicator that gives the operation's result. Negative: none.
int giver_of(const OffloadedRequest& operation);

}  // namespace offpath::mpi
