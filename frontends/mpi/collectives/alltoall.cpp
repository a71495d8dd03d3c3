#include "collectives/common/call.h"

using namespace offpath::mpi;

namespace {

struct Alltoall : Call {
    static constexpr Op op = Op::ialltoall;

    const void* sendbuf;
    std::int64_t sendcount;
    MPI_Datatype sendtype;
    void* recvbuf;
    std::int64_t recvcount;
    MPI_Datatype recvtype;
    MPI_Comm comm;
    TypeUse send_use{}, recv_use{};

    bool in_place() const { return sendbuf == MPI_IN_PLACE; }

    bool plausible() {
        if (recvbuf == MPI_IN_PLACE || recvtype == MPI_DATATYPE_NULL || recvcount < 0) return false;
        decided_by = static_cast<std::size_t>(recvcount) * type_bytes(recvtype);
        return in_place() || (sendtype != MPI_DATATYPE_NULL && sendcount >= 0);
    }

    std::uint64_t bytes_at_a_glance() const { return glance(recvcount, recvtype); }
    void remember() const { remember_bytes(recvtype); }
    bool prepare() {
        if (in_place()) {
            sendtype = recvtype;
            sendcount = recvcount;
        }
        send_use = use_type(sendtype, sendbuf);
        recv_use = use_type(recvtype, recvbuf);
        return send_use.usable && recv_use.usable &&
               static_cast<std::size_t>(sendcount) * send_use.bytes == decided_by;
    }

    auto host_arguments() const {
        return std::tuple(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
    }

    offpath_status_t start(OffloadedRequest& operation) {
        const auto ranks = static_cast<std::size_t>(team->size);
        const std::size_t to_send = ranks * static_cast<std::size_t>(sendcount);
        const void* send = in_place() ? copy_to_send(operation, recv_use, recvbuf, to_send)
                                      : bytes_to_send(operation, send_use, sendbuf, to_send);
        void* recv =
            bytes_to_receive(operation, recv_use, recvbuf, ranks * static_cast<std::size_t>(recvcount));
        if (send == nullptr || recv == nullptr) return OFFPATH_ERR_MEMORY;
        from_others = (ranks - 1) * decided_by;
        return tell_device(operation, {DevicePart::Shape::alltoall, send, recv, decided_by}, [&] {
            return offpath_ialltoall(device_team, send, recv, decided_by, &operation.device);
        });
    }

    void keep(Kept& kept) {
        kept.type(sendtype);
        kept.type(recvtype);
    }
};

}  // namespace

COLLECTIVE(Alltoall, Alltoall, alltoall,
           (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf, Count recvcount,
            MPI_Datatype recvtype, MPI_Comm comm),
           (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm))
