// Large non-blocking messages between ranks of one node, which by default stay on the host's MPI. They are
// counted if all ranks share a node, so that the summary can say which setting would offload them. Any
// thread.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "parcel_progress.h"

namespace offpath::mpi::p2p {

// Messages of so many elements are looked at, which is a comparison in the calls that leave all to the host's
// MPI. Messages of a few large elements are not counted. Written in MPI_Init.
inline int least_counted = std::numeric_limits<int>::max();
void open_neighbours();

void count_neighbour(const Arguments& message);
// The host's MPI has taken this message, and no device could have. Blocking ones stay with any setting, if
// both ends only wait for them.
inline void sent_to_neighbour(const Arguments& message) {
    if (message.count >= least_counted) count_neighbour(message);
}

// Adds what would offload these messages. Collective over the world; rank 0 adds it.
void add_hints(std::vector<std::string>& hints);

}  // namespace offpath::mpi::p2p
