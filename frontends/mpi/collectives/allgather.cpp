#include "collectives/common/call.h"

using namespace offpath::mpi;

namespace {

struct Allgather : Call {
    static constexpr Op op = Op::iallgather;

    const void* sendbuf;
    std::int64_t sendcount;
    MPI_Datatype sendtype;
    void* recvbuf;
    std::int64_t recvcount;
    MPI_Datatype recvtype;
    MPI_Comm comm;
    TypeUse send_use{}, recv_use{};
    std::size_t block = 0;

    bool in_place() const { return sendbuf == MPI_IN_PLACE; }

    bool plausible() {
        if (recvbuf == MPI_IN_PLACE || recvtype == MPI_DATATYPE_NULL || recvcount < 0) return false;
        block = static_cast<std::size_t>(recvcount) * type_bytes(recvtype);
        decided_by = block * static_cast<std::size_t>(team->size);
        return in_place() || (sendtype != MPI_DATATYPE_NULL && sendcount >= 0);
    }

    bool prepare() {
        recv_use = use_type(recvtype, recvbuf);
        if (in_place()) return recv_use.usable;
        send_use = use_type(sendtype, sendbuf);
        return recv_use.usable && send_use.usable &&
               static_cast<std::size_t>(sendcount) * send_use.bytes == block;
    }

    auto host_arguments() const {
        return std::tuple(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
    }

    offpath_status_t start(OffloadedRequest& operation) {
        const auto ranks = static_cast<std::size_t>(team->size);
        const auto rank = static_cast<std::size_t>(team->rank);
        const auto count = static_cast<std::size_t>(recvcount);
        void* recv = bytes_to_receive(operation, recv_use, recvbuf, ranks * count);
        if (recv == nullptr) return OFFPATH_ERR_MEMORY;
        const void* send = OFFPATH_IN_PLACE;  // NOLINT(performance-no-int-to-ptr)
        if (in_place()) {
            const void* own = at(recvbuf, static_cast<MPI_Aint>(rank * count) * recv_use.extent);
            if (!put_own_block(recv_use, own, count, recv, rank * block)) return OFFPATH_ERR_MEMORY;
        } else {
            send = bytes_to_send(operation, send_use, sendbuf, static_cast<std::size_t>(sendcount));
            if (send == nullptr) return OFFPATH_ERR_MEMORY;
        }
        from_others = decided_by - block;
        return tell_device(operation, {DevicePart::Shape::allgather, sent_from(send), recv, block}, [&] {
            return offpath_iallgather(device_team, send, recv, block, &operation.device);
        });
    }

    void keep(Kept& kept) {
        if (!in_place()) kept.type(sendtype);
        kept.type(recvtype);
    }
};

}  // namespace

COLLECTIVE(Allgather, Allgather, allgather,
           (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf, Count recvcount,
            MPI_Datatype recvtype, MPI_Comm comm),
           (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm))
