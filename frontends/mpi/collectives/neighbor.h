// What the collectives of a process topology share: blocks for neighbours, each of which decides for itself.
#pragma once

#include "pairs.h"
#include "topology.h"

namespace offpath::mpi {

// The neighbours of the team's communicator, read at the first use; null without a topology, which is the
// host's to report. One thread a communicator, as for all its collectives.
const Neighbours* neighbours_of(Team& team, MPI_Comm comm);

struct Neighbourhood : Call {
    static constexpr bool each_pair_decides = true;

    const Neighbours* around = nullptr;

    int indegree() const { return static_cast<int>(around->sources.size()); }
    int outdegree() const { return static_cast<int>(around->destinations.size()); }

    bool find_neighbours(MPI_Comm comm) {
        if (team->handle == nullptr) return true;  // it stays on the host
        around = neighbours_of(*team, comm);
        return around != nullptr;
    }

    // Of several blocks between the same two ranks, MPICH's receives are matched from the last to the first,
    // so the host does all of them there.
    void leave_repeated_to_host() {
#if !defined(OPEN_MPI)
        host_reason = HostReason::repeated;
#endif
    }

    // `block(i)` describes what goes to destination i, or comes from source i.
    template <typename SendBlock, typename RecvBlock>
    offpath_status_t start_blocks(Operation& operation, Op op, SendBlock send_block, RecvBlock recv_block) {
        Exchange& exchange = fresh_exchange();
        const bool crossed = around->grid && op >= Op::ineighbor_alltoall && host_crosses(op, form);
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
    static offpath_status_t start_neighbours(Call& call, Operation& operation, const Exchange& exchange);
};

}  // namespace offpath::mpi
