// MPI_Neighbor_allgather and MPI_Neighbor_allgatherv in their forms: one block for all destinations.
#include "collectives/common/neighbor.h"

using namespace offpath::mpi;

namespace {

struct NeighborAllgather : Neighbourhood {
    static constexpr Op op = Op::ineighbor_allgather;

    const void* sendbuf;
    std::int64_t sendcount;
    MPI_Datatype sendtype;
    void* recvbuf;
    std::int64_t recvcount;
    MPI_Datatype recvtype;
    MPI_Comm comm;
    TypeUse send_use{}, recv_use{};

    bool plausible() {
        return sendbuf != MPI_IN_PLACE && recvbuf != MPI_IN_PLACE && sendcount >= 0 && recvcount >= 0 &&
               plausible_type(sendtype, sendcount > 0) && plausible_type(recvtype, recvcount > 0) &&
               find_neighbours(comm);
    }
    bool prepare() {
        send_use = use_type_of(sendtype, sendcount > 0, sendbuf);
        recv_use = use_type_of(recvtype, recvcount > 0, recvbuf);
        return send_use.usable && recv_use.usable;
    }
    auto host_arguments() const {
        return std::tuple(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
    }

    offpath_status_t start(OffloadedRequest& operation) {
        return start_blocks(
            operation, op,
            [&](int peer, int) {
                return Block{peer, at(sendbuf, 0), sendcount, sendtype, send_use};
            },
            [&](int peer, int i) {
                const MPI_Aint place = static_cast<MPI_Aint>(i) * recvcount * recv_use.extent;
                return Block{peer, at(recvbuf, place), recvcount, recvtype, recv_use};
            });
    }
    void keep(Kept& kept) {
        kept.type(sendtype);
        kept.type(recvtype);
    }
};

struct NeighborAllgatherv : Neighbourhood {
    static constexpr Op op = Op::ineighbor_allgatherv;

    const void* sendbuf;
    std::int64_t sendcount;
    MPI_Datatype sendtype;
    void* recvbuf;
    Counts recvcounts;
    Counts displs;
    MPI_Datatype recvtype;
    MPI_Comm comm;
    TypeUse send_use{}, recv_use{};

    bool plausible() {
        if (sendbuf == MPI_IN_PLACE || recvbuf == MPI_IN_PLACE || sendcount < 0 ||
            !plausible_type(sendtype, sendcount > 0) || !find_neighbours(comm)) {
            return false;
        }
        return around == nullptr || indegree() == 0 ||
               (plausible_counts(recvcounts, indegree()) && displs != nullptr &&
                plausible_type(recvtype, any_elements(recvcounts, indegree())));
    }
    bool prepare() {
        send_use = use_type_of(sendtype, sendcount > 0, sendbuf);
        recv_use = use_type_of(recvtype, any_elements(recvcounts, indegree()), recvbuf);
        return send_use.usable && recv_use.usable;
    }
    auto host_arguments() const {
        return std::tuple(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm);
    }

    offpath_status_t start(OffloadedRequest& operation) {
        return start_blocks(
            operation, op,
            [&](int peer, int) {
                return Block{peer, at(sendbuf, 0), sendcount, sendtype, send_use};
            },
            [&](int peer, int i) {
                return Block{peer, at(recvbuf, displs[i] * recv_use.extent), recvcounts[i], recvtype,
                             recv_use};
            });
    }
    void keep(Kept& kept) {
        kept.type(sendtype);
        kept.type(recvtype);
        kept.array(recvcounts, indegree());
        kept.array(displs, indegree());
    }
};

}  // namespace

COLLECTIVE(NeighborAllgather, Neighbor_allgather, neighbor_allgather,
           (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf, Count recvcount,
            MPI_Datatype recvtype, MPI_Comm comm),
           (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm))
COLLECTIVE(NeighborAllgatherv, Neighbor_allgatherv, neighbor_allgatherv,
           (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf,
            const Count recvcounts[], const Displacement displs[], MPI_Datatype recvtype, MPI_Comm comm),
           (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm))
