#include "buffers.h"
#include "counters.h"
#include "runtime.h"

using namespace offpath::mpi;

namespace {

offpath_status_t start(Operation& operation, const void* send, void* recv, std::size_t bytes) {
    if (send == nullptr || recv == nullptr) return OFFPATH_ERR_MEMORY;
    return start_on_device(
        [&] { return offpath_ialltoall(operation.team->handle, send, recv, bytes, &operation.device); });
}

}  // namespace

extern "C" OFFPATH_API int MPI_Ialltoall(const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                                         void* recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                                         MPI_Request* request) {
    const auto on_host = [&] {
        return PMPI_Ialltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request);
    };
    const bool in_place = sendbuf == MPI_IN_PLACE;
    if (!active() || !plausible(comm, recvbuf, request) || recvtype == MPI_DATATYPE_NULL || recvcount < 0)
        return on_host();
    const std::size_t bytes = static_cast<std::size_t>(recvcount) * type_bytes(recvtype);
    Team* team = team_if_large(comm, Op::ialltoall, bytes);
    if (team == nullptr) return on_host();

    const TypeUse recv_use = use_type(recvtype);
    TypeUse send_use = recv_use;
    if (!in_place) {
        if (sendtype == MPI_DATATYPE_NULL || sendcount < 0) return on_host();
        send_use = use_type(sendtype);
    } else {
        sendcount = recvcount;
    }
    if (!recv_use.usable || !send_use.usable ||
        static_cast<std::size_t>(sendcount) * send_use.bytes != bytes) {
        return on_host();
    }

    const auto ranks = static_cast<std::size_t>(team->size);
    const std::size_t to_send = ranks * static_cast<std::size_t>(sendcount);
    Operation& operation = acquire_operation(Op::ialltoall, *team);
    const void* send = in_place ? copy_to_send(operation, recv_use, recvbuf, to_send)
                                : bytes_to_send(operation, send_use, sendbuf, to_send);
    void* recv = bytes_to_receive(operation, recv_use, recvbuf, ranks * static_cast<std::size_t>(recvcount));
    const int result = publish(operation, start(operation, send, recv, bytes), request);
    if (result == MPI_SUCCESS) count_offloaded(*team, Op::ialltoall, (ranks - 1) * bytes, bytes);
    return result;
}
