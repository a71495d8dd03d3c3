#include "buffers.h"
#include "counters.h"
#include "runtime.h"

using namespace offpath::mpi;

namespace {

// In place, a rank's own block already lies in the receive buffer, and in its staging memory once it was
// packed there.
bool put_own_block(const TypeUse& type, const void* recvbuf, std::size_t rank, std::size_t count,
                   void* recv) {
    if (type.contiguous()) return true;
    const void* own = at(recvbuf, static_cast<MPI_Aint>(rank * count) * type.extent);
    return pack(*type.layout, own, count, at(recv, static_cast<MPI_Aint>(rank * count * type.bytes)));
}

}  // namespace

extern "C" OFFPATH_API int MPI_Iallgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                                          void* recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                                          MPI_Request* request) {
    const auto on_host = [&] {
        return PMPI_Iallgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request);
    };
    const bool in_place = sendbuf == MPI_IN_PLACE;
    if (!active() || !plausible(comm, recvbuf, request) || recvtype == MPI_DATATYPE_NULL || recvcount < 0)
        return on_host();
    const std::size_t bytes = static_cast<std::size_t>(recvcount) * type_bytes(recvtype);
    const auto total = bytes * static_cast<std::size_t>(find_team(comm).size);
    Team* team = team_if_large(comm, Op::iallgather, total);
    if (team == nullptr) return on_host();

    const TypeUse recv_use = use_type(recvtype);
    TypeUse send_use = recv_use;
    if (!in_place) {
        if (sendtype == MPI_DATATYPE_NULL || sendcount < 0) return on_host();
        send_use = use_type(sendtype);
        if (static_cast<std::size_t>(sendcount) * send_use.bytes != bytes) return on_host();
    }
    if (!recv_use.usable || !send_use.usable) return on_host();

    const auto ranks = static_cast<std::size_t>(team->size);
    const auto count = static_cast<std::size_t>(recvcount);
    Operation& operation = acquire_operation(Op::iallgather, *team);
    void* recv = bytes_to_receive(operation, recv_use, recvbuf, ranks * count);
    const void* send = OFFPATH_IN_PLACE;  // NOLINT(performance-no-int-to-ptr)
    bool ready = recv != nullptr;
    if (ready && in_place) {
        ready = put_own_block(recv_use, recvbuf, static_cast<std::size_t>(team->rank), count, recv);
    } else if (ready) {
        send = bytes_to_send(operation, send_use, sendbuf, static_cast<std::size_t>(sendcount));
        ready = send != nullptr;
    }
    const offpath_status_t status = ready ? start_on_device([&] {
        return offpath_iallgather(team->handle, send, recv, bytes, &operation.device);
    })
                                          : OFFPATH_ERR_MEMORY;
    const int result = publish(operation, status, request);
    if (result == MPI_SUCCESS) count_offloaded(*team, Op::iallgather, total - bytes, total);
    return result;
}
