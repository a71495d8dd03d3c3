#include <algorithm>
#include <cstdint>
#include <optional>

#include "buffers.h"
#include "counters.h"
#include "runtime.h"

using namespace offpath::mpi;

namespace {

// Elements of all blocks; nothing when the counts are no counts.
std::optional<std::size_t> sum_of(const int* counts, int ranks) {
    std::size_t sum = 0;
    for (int i = 0; i < ranks; ++i) {
        if (counts[i] < 0) return std::nullopt;
        sum += static_cast<std::size_t>(counts[i]);
    }
    return sum;
}

// Fills operation.recv_bytes and recv_offsets and returns the address that the offsets count from.
// Displacements may be negative, offsets may not: they count from the lowest block.
void* place_blocks(Operation& operation, const TypeUse& type, void* recvbuf, const int* counts,
                   const int* displs, std::size_t total_count) {
    const auto ranks = static_cast<std::size_t>(operation.team->size);
    operation.recv_bytes.resize(ranks);
    operation.recv_offsets.resize(ranks);
    MPI_Aint lowest = 0;
    for (std::size_t i = 0; i < ranks; ++i) {
        operation.recv_bytes[i] = static_cast<std::size_t>(counts[i]) * type.bytes;
        if (counts[i] > 0) lowest = std::min(lowest, displs[i] * type.extent);
    }
    if (type.contiguous()) {
        for (std::size_t i = 0; i < ranks; ++i) {
            operation.recv_offsets[i] =
                counts[i] > 0 ? static_cast<std::size_t>(displs[i] * type.extent - lowest) : 0;
        }
        return at(recvbuf, lowest);
    }
    void* staging = bytes_to_receive(operation, type, recvbuf, total_count);
    operation.pieces.clear();
    std::size_t offset = 0;
    for (std::size_t i = 0; i < ranks; ++i) {
        operation.recv_offsets[i] = offset;
        const auto count = static_cast<std::size_t>(counts[i]);
        if (count > 0) operation.pieces.push_back({at(recvbuf, displs[i] * type.extent), count, offset});
        offset += operation.recv_bytes[i];
    }
    return staging;
}

bool put_own_block(Operation& operation, const TypeUse& type, const void* recvbuf, const int* counts,
                   const int* displs, void* recv) {
    if (type.contiguous()) return true;
    const auto rank = static_cast<std::size_t>(operation.team->rank);
    return pack(*type.layout, at(recvbuf, displs[rank] * type.extent), static_cast<std::size_t>(counts[rank]),
                at(recv, static_cast<MPI_Aint>(operation.recv_offsets[rank])));
}

}  // namespace

extern "C" OFFPATH_API int MPI_Iallgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                                           void* recvbuf, const int recvcounts[], const int displs[],
                                           MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
    const auto on_host = [&] {
        return PMPI_Iallgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm,
                                request);
    };
    const bool in_place = sendbuf == MPI_IN_PLACE;
    if (!active() || !plausible(comm, recvbuf, request) || recvtype == MPI_DATATYPE_NULL ||
        recvcounts == nullptr || displs == nullptr) {
        return on_host();
    }
    const std::optional<std::size_t> elements = sum_of(recvcounts, find_team(comm).size);
    if (!elements) return on_host();
    const std::size_t total = *elements * type_bytes(recvtype);
    Team* team = team_if_large(comm, Op::iallgatherv, total);
    if (team == nullptr) return on_host();

    const TypeUse recv_use = use_type(recvtype);
    TypeUse send_use = recv_use;
    const std::size_t own_bytes = static_cast<std::size_t>(recvcounts[team->rank]) * recv_use.bytes;
    if (!in_place) {
        if (sendtype == MPI_DATATYPE_NULL || sendcount < 0) return on_host();
        send_use = use_type(sendtype);
        if (static_cast<std::size_t>(sendcount) * send_use.bytes != own_bytes) return on_host();
    }
    if (!recv_use.usable || !send_use.usable) return on_host();

    Operation& operation = acquire_operation(Op::iallgatherv, *team);
    void* recv = place_blocks(operation, recv_use, recvbuf, recvcounts, displs, *elements);
    const void* send = OFFPATH_IN_PLACE;  // NOLINT(performance-no-int-to-ptr)
    bool ready = recv != nullptr || recv_use.contiguous();
    if (ready && in_place) {
        ready = put_own_block(operation, recv_use, recvbuf, recvcounts, displs, recv);
    } else if (ready && sendcount > 0) {
        send = bytes_to_send(operation, send_use, sendbuf, static_cast<std::size_t>(sendcount));
        ready = send != nullptr;
    } else if (ready) {
        send = sendbuf;
    }
    const offpath_status_t status = ready ? start_on_device([&] {
        return offpath_iallgatherv(team->handle, send, recv, operation.recv_bytes.data(),
                                   operation.recv_offsets.data(), &operation.device);
    })
                                          : OFFPATH_ERR_MEMORY;
    const int result = publish(operation, status, request);
    if (result == MPI_SUCCESS) count_offloaded(*team, Op::iallgatherv, total - own_bytes, total);
    return result;
}
