// MPI_Alltoallv and MPI_Alltoallw in their forms.
#include "collectives/common/pairs.h"

using namespace offpath::mpi;

namespace {

// Every rank begins with itself and continues with the next rank, so that not all ranks send to rank 0 first.
offpath_status_t start_alltoall(Call& call, OffloadedRequest& operation, Exchange& exchange) {
    exchange.first_send = static_cast<std::size_t>(call.team->rank);
    return start_exchange(call, operation, exchange, [&](const DeviceExchange& device) {
        return tell_device(operation, {DevicePart::Shape::pairs, device.from, device.to}, [&] {
            return offpath_ialltoallv(call.device_team, device.from, device.send_bytes, device.send_offsets,
                                      device.to, device.recv_bytes, device.recv_offsets, &operation.device);
        });
    });
}

struct Alltoallv : Call {
    static constexpr Op op = Op::ialltoallv;

    const void* sendbuf;
    Counts sendcounts;
    Counts sdispls;
    MPI_Datatype sendtype;
    void* recvbuf;
    Counts recvcounts;
    Counts rdispls;
    MPI_Datatype recvtype;
    MPI_Comm comm;
    TypeUse send_use{}, recv_use{};

    bool in_place() const { return sendbuf == MPI_IN_PLACE; }

    bool plausible() {
        return recvbuf != MPI_IN_PLACE && plausible_side(recvcounts, rdispls, recvtype) &&
               (in_place() || plausible_side(sendcounts, sdispls, sendtype));
    }

    bool plausible_side(Counts counts, Counts displs, MPI_Datatype type) const {
        return plausible_counts(counts, team->size) && displs != nullptr &&
               plausible_type(type, any_elements(counts, team->size));
    }

    bool prepare() {
        if (in_place()) {
            sendcounts = recvcounts;
            sdispls = rdispls;
            sendtype = recvtype;
        }
        send_use =
            use_type_of(sendtype, any_elements(sendcounts, team->size), in_place() ? recvbuf : sendbuf);
        recv_use = use_type_of(recvtype, any_elements(recvcounts, team->size), recvbuf);
        const auto self = team->rank;
        return send_use.usable && recv_use.usable &&
               static_cast<std::size_t>(sendcounts[self]) * send_use.bytes ==
                   static_cast<std::size_t>(recvcounts[self]) * recv_use.bytes;
    }

    auto host_arguments() const {
        return std::tuple(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype,
                          comm);
    }

    offpath_status_t start(OffloadedRequest& operation) {
        Exchange& exchange = fresh_exchange();
        exchange.send_copies = in_place();
        const void* from = in_place() ? recvbuf : sendbuf;
        for (int i = 0; i < team->size; ++i) {
            exchange.sends.push_back(
                {i, at(from, sdispls[i] * send_use.extent), sendcounts[i], sendtype, send_use});
            exchange.recvs.push_back(
                {i, at(recvbuf, rdispls[i] * recv_use.extent), recvcounts[i], recvtype, recv_use});
        }
        return start_alltoall(*this, operation, exchange);
    }

    void keep(Kept& kept) {
        const int n = team->size;
        kept.array(recvcounts, n);
        kept.array(rdispls, n);
        kept.type(recvtype);
        if (in_place()) return;
        kept.array(sendcounts, n);
        kept.array(sdispls, n);
        kept.type(sendtype);
    }
};

struct Alltoallw : Call {
    static constexpr Op op = Op::ialltoallw;

    const void* sendbuf;
    Counts sendcounts;
    Counts sdispls;
    const MPI_Datatype* sendtypes;
    void* recvbuf;
    Counts recvcounts;
    Counts rdispls;
    const MPI_Datatype* recvtypes;
    MPI_Comm comm;

    bool in_place() const { return sendbuf == MPI_IN_PLACE; }

    bool plausible_side(Counts counts, Counts displs, const MPI_Datatype* types) const {
        if (!plausible_counts(counts, team->size) || displs == nullptr || types == nullptr) return false;
        for (int i = 0; i < team->size; ++i) {
            if (!plausible_type(types[i], counts[i] > 0)) return false;
        }
        return true;
    }
    bool usable_types(Counts counts, const MPI_Datatype* types) const {
        for (int i = 0; i < team->size; ++i) {
            if (counts[i] > 0 && !use_type(types[i]).usable) return false;
        }
        return true;
    }

    bool plausible() {
        return recvbuf != MPI_IN_PLACE && plausible_side(recvcounts, rdispls, recvtypes) &&
               (in_place() || plausible_side(sendcounts, sdispls, sendtypes));
    }

    bool prepare() {
        if (in_place()) {
            sendcounts = recvcounts;
            sdispls = rdispls;
            sendtypes = recvtypes;
        }
        return usable_types(recvcounts, recvtypes) && usable_types(sendcounts, sendtypes) &&
               own_bytes(sendcounts, sendtypes) == own_bytes(recvcounts, recvtypes);
    }

    static Block block(int peer, char* elements, std::int64_t count, MPI_Datatype type) {
        return {peer, elements, count, type, use_type_of(type, count > 0, elements)};
    }

    std::size_t own_bytes(Counts counts, const MPI_Datatype* types) const {
        const auto count = static_cast<std::size_t>(counts[team->rank]);
        return count > 0 ? count * type_bytes(types[team->rank]) : 0;
    }

    auto host_arguments() const {
        return std::tuple(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
                          comm);
    }

    offpath_status_t start(OffloadedRequest& operation) {
        Exchange& exchange = fresh_exchange();
        exchange.send_copies = in_place();
        const void* from = in_place() ? recvbuf : sendbuf;
        for (int i = 0; i < team->size; ++i) {
            exchange.sends.push_back(block(i, at(from, sdispls[i]), sendcounts[i], sendtypes[i]));
            exchange.recvs.push_back(block(i, at(recvbuf, rdispls[i]), recvcounts[i], recvtypes[i]));
        }
        return start_alltoall(*this, operation, exchange);
    }

    void keep(Kept& kept) {
        const int n = team->size;
        kept.array(recvcounts, n);
        kept.array(rdispls, n);
        kept.types(recvtypes, n);
        if (in_place()) return;
        kept.array(sendcounts, n);
        kept.array(sdispls, n);
        kept.types(sendtypes, n);
    }
};

}  // namespace

COLLECTIVE(Alltoallv, Alltoallv, alltoallv,
           (const void* sendbuf, const Count sendcounts[], const Displacement sdispls[],
            MPI_Datatype sendtype, void* recvbuf, const Count recvcounts[], const Displacement rdispls[],
            MPI_Datatype recvtype, MPI_Comm comm),
           (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm))
COLLECTIVE(Alltoallw, Alltoallw, alltoallw,
           (const void* sendbuf, const Count sendcounts[], const Displacement sdispls[],
            const MPI_Datatype sendtypes[], void* recvbuf, const Count recvcounts[],
            const Displacement rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm),
           (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm))
