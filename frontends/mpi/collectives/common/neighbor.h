// Common code of the collectives on a process topology: blocks for neighbours, each of which decides for
// itself.
#pragma once

#include "pairs.h"
#include "topology.h"

namespace offpath::mpi {

// The neighbours of the team's communicator, read at the first use. Null without a topology; the host reports
// that. One thread per communicator, as for all its collectives.
const Neighbours* neighbours_of(Team& team, MPI_Comm comm);

struct Neighbourhood : Call {
    const Neighbours* around = nullptr;

    int indegree() const { return static_cast<int>(around->sources.size()); }
    int outdegree() const { return static_cast<int>(around->destinations.size()); }

    bool find_neighbours(MPI_Comm comm) {
        if (!team->served()) return true;  // it stays on the host
        around = neighbours_of(*team, comm);
        return around != nullptr;
    }

    // If several blocks go between the same two ranks, MPICH matches receives from the last to the first. The
    // host therefore handles all of these blocks there.
    void leave_repeated_to_host() {
#if !defined(OPEN_MPI)
        host_reason = HostReason::repeated;
#endif
    }

    // `block(i)` describes the block for destination i, or from source i.
    template <typename SendBlock, typename RecvBlock>
    offpath_status_t start_blocks(OffloadedRequest& operation, Op op, SendBlock send_block,
                                  RecvBlock recv_block) {
        Exchange& exchange = fresh_exchange();
        const bool crossed = around->grid && host_crosses(op, form);
        for (int i = 0; i < outdegree(); ++i) {
            const int which = crossed ? i ^ 1 : i;
            const int peer = around->destinations[static_cast<std::size_t>(which)];
            if (peer != MPI_PROC_NULL) exchange.sends.push_back(send_block(peer, which));
        }
        for (int i = 0; i < indegree(); ++i) {
            const int peer = around->sources[static_cast<std::size_t>(i)];
            if (peer != MPI_PROC_NULL) exchange.recvs.push_back(recv_block(peer, i));
        }
        return start_neighbours(*this, operation, exchange);
    }

  private:
    static offpath_status_t start_neighbours(Call& call, OffloadedRequest& operation,
                                             const Exchange& exchange);
};

}  // namespace offpath::mpi
