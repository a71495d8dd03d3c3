// Messages between this host and devices of ranks, on communicators with the key REMOTE_DEST_HETERO
// (runtime/hetero_key.h). The proxies match and move them, on a mixed team (runtime/mixed_teams.h) of the job
// of hosts and devices. All communicators of the same ranks share one mixed team, and so do those of regions:
// a message of a host meets the receive of a region by ranks and tag alone.
//
// Ownership: the communicator's record. Threads: any.
#pragma once

#include <mpi.h>
#include <offpath/offpath.h>

#include "communicators/communicators.h"
#include "runtime/outstanding_counts.h"
#include "runtime/runtime.h"

namespace offpath::mpi {

struct Devices {
    offpath_team_h team = nullptr;
    int size = 0;
};

namespace devices {

// What a communicator that has the key needs; otherwise null. One load while no communicator has it.
inline Team* team_of(MPI_Comm comm) {
    if (outstanding.pairs == 0 || !active() || comm == MPI_COMM_NULL) return nullptr;
    Team& team = find_team(comm);
    return team.devices.load(std::memory_order_relaxed) != nullptr ? &team : nullptr;
}

struct Arguments {
    const char* call;
    void* buffer;
    int count;
    MPI_Datatype type;
    int peer, tag;
    MPI_Comm comm;
};

// These do what the MPI calls do, to a device or from one. A send of up to 4 KiB, and one with `copies`, is
// done when it is copied.
int send(Team& team, const Arguments& arguments, bool copies = false);
int start_send(Team& team, const Arguments& arguments, MPI_Request* request, bool copies = false);
int receive(Team& team, const Arguments& arguments, MPI_Status* status);
int start_receive(Team& team, const Arguments& arguments, MPI_Request* request);
int send_and_receive(Team& team, const Arguments& out, const Arguments& in, MPI_Status* status);
// `flag` null: waits for a message.
int probe(Team& team, const char* call, int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status);
// Progresses messages with devices. How many are not complete.
std::size_t left_messages();
// Reports that the call cannot be made on a communicator with the key.
int unsupported(const char* call, MPI_Comm comm);

}  // namespace devices
}  // namespace offpath::mpi
