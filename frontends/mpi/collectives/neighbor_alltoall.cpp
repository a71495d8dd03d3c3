// MPI_Neighbor_alltoall, MPI_Neighbor_alltoallv and MPI_Neighbor_alltoallw in their forms: one block for each
// destination.
#include "collectives/common/neighbor.h"

using namespace offpath::mpi;

namespace {

struct NeighborAlltoall : Neighbourhood {
    static constexpr Op op = Op::ineighbor_alltoall;

    const void* sendbuf;
    std::int64_t sendcount;
    MPI_Datatype sendtype;
    void* recvbuf;
    std::int64_t recvcount;
    MPI_Datatype recvtype;
    MPI_Comm comm;
    TypeUse send_use{}, recv_use{};

    bool plausible() {
        leave_repeated_to_host();
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
            [&](int peer, int i) {
                const MPI_Aint place = static_cast<MPI_Aint>(i) * sendcount * send_use.extent;
                return Block{peer, at(sendbuf, place), sendcount, sendtype, send_use};
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

// Arrays of blocks; displacements are in elements (v) or bytes (w).
struct Blocks : Neighbourhood {
    const void* sendbuf;
    Counts sendcounts;
    Counts sdispls;
    void* recvbuf;
    Counts recvcounts;
    Counts rdispls;

    bool plausible_arrays() const {
        if (sendbuf == MPI_IN_PLACE || recvbuf == MPI_IN_PLACE) return false;
        if (around == nullptr) return true;
        return (outdegree() == 0 || (plausible_counts(sendcounts, outdegree()) && sdispls != nullptr)) &&
               (indegree() == 0 || (plausible_counts(recvcounts, indegree()) && rdispls != nullptr));
    }
    void keep_arrays(Kept& kept) {
        kept.array(sendcounts, outdegree());
        kept.array(sdispls, outdegree());
        kept.array(recvcounts, indegree());
        kept.array(rdispls, indegree());
    }
};

struct NeighborAlltoallv : Blocks {
    static constexpr Op op = Op::ineighbor_alltoallv;

    MPI_Datatype sendtype, recvtype;
    MPI_Comm comm;
    TypeUse send_use{}, recv_use{};

    NeighborAlltoallv(Call, const void* from, Counts send_counts, Counts send_displs, MPI_Datatype send_type,
                      void* to, Counts recv_counts, Counts recv_displs, MPI_Datatype recv_type,
                      MPI_Comm the_comm)
        : Blocks{{}, from, send_counts, send_displs, to, recv_counts, recv_displs},
          sendtype(send_type),
          recvtype(recv_type),
          comm(the_comm) {}

    bool plausible() {
        leave_repeated_to_host();
        if (!find_neighbours(comm) || !plausible_arrays()) return false;
        return around == nullptr || (plausible_type(sendtype, any_elements(sendcounts, outdegree())) &&
                                     plausible_type(recvtype, any_elements(recvcounts, indegree())));
    }
    bool prepare() {
        send_use = use_type_of(sendtype, any_elements(sendcounts, outdegree()), sendbuf);
        recv_use = use_type_of(recvtype, any_elements(recvcounts, indegree()), recvbuf);
        return send_use.usable && recv_use.usable;
    }
    auto host_arguments() const {
        return std::tuple(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype,
                          comm);
    }

    offpath_status_t start(OffloadedRequest& operation) {
        return start_blocks(
            operation, op,
            [&](int peer, int i) {
                return Block{peer, at(sendbuf, sdispls[i] * send_use.extent), sendcounts[i], sendtype,
                             send_use};
            },
            [&](int peer, int i) {
                return Block{peer, at(recvbuf, rdispls[i] * recv_use.extent), recvcounts[i], recvtype,
                             recv_use};
            });
    }
    void keep(Kept& kept) {
        keep_arrays(kept);
        kept.type(sendtype);
        kept.type(recvtype);
    }
};

struct NeighborAlltoallw : Blocks {
    static constexpr Op op = Op::ineighbor_alltoallw;

    const MPI_Datatype* sendtypes;
    const MPI_Datatype* recvtypes;
    MPI_Comm comm;

    NeighborAlltoallw(Call, const void* from, Counts send_counts, Counts send_displs,
                      const MPI_Datatype* send_types, void* to, Counts recv_counts, Counts recv_displs,
                      const MPI_Datatype* recv_types, MPI_Comm the_comm)
        : Blocks{{}, from, send_counts, send_displs, to, recv_counts, recv_displs},
          sendtypes(send_types),
          recvtypes(recv_types),
          comm(the_comm) {}

    static bool plausible_types(Counts counts, const MPI_Datatype* types, int n) {
        for (int i = 0; i < n; ++i) {
            if (types == nullptr || !plausible_type(types[i], counts[i] > 0)) return false;
        }
        return true;
    }
    static bool usable_types(Counts counts, const MPI_Datatype* types, int n) {
        for (int i = 0; i < n; ++i) {
            if (counts[i] > 0 && !use_type(types[i]).usable) return false;
        }
        return true;
    }

    bool plausible() {
        leave_repeated_to_host();
        if (!find_neighbours(comm) || !plausible_arrays()) return false;
        return around == nullptr || (plausible_types(sendcounts, sendtypes, outdegree()) &&
                                     plausible_types(recvcounts, recvtypes, indegree()));
    }
    bool prepare() {
        return usable_types(sendcounts, sendtypes, outdegree()) &&
               usable_types(recvcounts, recvtypes, indegree());
    }
    auto host_arguments() const {
        return std::tuple(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
                          comm);
    }

    offpath_status_t start(OffloadedRequest& operation) {
        const auto block = [](int peer, char* elements, std::int64_t count, MPI_Datatype type) {
            return Block{peer, elements, count, type, use_type_of(type, count > 0, elements)};
        };
        return start_blocks(
            operation, op,
            [&](int peer, int i) {
                return block(peer, at(sendbuf, sdispls[i]), sendcounts[i], sendtypes[i]);
            },
            [&](int peer, int i) {
                return block(peer, at(recvbuf, rdispls[i]), recvcounts[i], recvtypes[i]);
            });
    }
    void keep(Kept& kept) {
        keep_arrays(kept);
        kept.types(sendtypes, outdegree());
        kept.types(recvtypes, indegree());
    }
};

}  // namespace

COLLECTIVE(NeighborAlltoall, Neighbor_alltoall, neighbor_alltoall,
           (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf, Count recvcount,
            MPI_Datatype recvtype, MPI_Comm comm),
           (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm))
COLLECTIVE(NeighborAlltoallv, Neighbor_alltoallv, neighbor_alltoallv,
           (const void* sendbuf, const Count sendcounts[], const Displacement sdispls[],
            MPI_Datatype sendtype, void* recvbuf, const Count recvcounts[], const Displacement rdispls[],
            MPI_Datatype recvtype, MPI_Comm comm),
           (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm))
COLLECTIVE(NeighborAlltoallw, Neighbor_alltoallw, neighbor_alltoallw,
           (const void* sendbuf, const Count sendcounts[], const MPI_Aint sdispls[],
            const MPI_Datatype sendtypes[], void* recvbuf, const Count recvcounts[], const MPI_Aint rdispls[],
            const MPI_Datatype recvtypes[], MPI_Comm comm),
           (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm))
