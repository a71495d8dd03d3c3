#include <algorithm>

#include "collectives/common/pairs.h"

using namespace offpath::mpi;

namespace {

struct Allgatherv : Call {
    static constexpr Op op = Op::iallgatherv;

    const void* sendbuf;
    std::int64_t sendcount;
    MPI_Datatype sendtype;
    void* recvbuf;
    Counts recvcounts;
    Counts displs;
    MPI_Datatype recvtype;
    MPI_Comm comm;
    TypeUse send_use{}, recv_use{};
    std::size_t elements = 0;  // of all blocks

    bool in_place() const { return sendbuf == MPI_IN_PLACE; }
    std::size_t own_bytes() const {
        return static_cast<std::size_t>(recvcounts[team->rank]) * recv_use.bytes;
    }

    bool plausible() {
        if (recvbuf == MPI_IN_PLACE || recvtype == MPI_DATATYPE_NULL || recvcounts == nullptr ||
            displs == nullptr) {
            return false;
        }
        elements = 0;
        for (int i = 0; i < team->size; ++i) {
            if (recvcounts[i] < 0) return false;
            elements += static_cast<std::size_t>(recvcounts[i]);
        }
        decided_by = elements * type_bytes(recvtype);
        return in_place() || (sendcount >= 0 && plausible_type(sendtype, sendcount > 0));
    }

    bool prepare() {
        recv_use = use_type(recvtype, recvbuf);
        if (in_place()) return recv_use.usable;
        send_use = use_type_of(sendtype, sendcount > 0, sendbuf);
        return recv_use.usable && send_use.usable &&
               static_cast<std::size_t>(sendcount) * send_use.bytes == own_bytes();
    }

    // Fills operation.recv_bytes and recv_offsets, and returns the address from which the offsets count.
    // Displacements may be negative; offsets may not, so they count from the lowest block.
    void* place_blocks(OffloadedRequest& operation) const {
        const auto ranks = static_cast<std::size_t>(team->size);
        operation.recv_bytes.resize(ranks);
        operation.recv_offsets.assign(ranks, 0);
        MPI_Aint lowest = 0;
        for (std::size_t i = 0; i < ranks; ++i) {
            operation.recv_bytes[i] = static_cast<std::size_t>(recvcounts[i]) * recv_use.bytes;
            if (recvcounts[i] > 0) lowest = std::min(lowest, displs[i] * recv_use.extent);
        }
        if (recv_use.contiguous()) {
            for (std::size_t i = 0; i < ranks; ++i) {
                if (recvcounts[i] == 0) continue;
                operation.recv_offsets[i] = static_cast<std::size_t>(displs[i] * recv_use.extent - lowest);
            }
            return at(recvbuf, lowest);
        }
        operation.recv_staging = acquire_staging(elements * recv_use.bytes);
        std::size_t offset = 0;
        for (std::size_t i = 0; i < ranks; ++i) {
            operation.recv_offsets[i] = offset;
            const auto count = static_cast<std::size_t>(recvcounts[i]);
            if (count > 0)
                unpack_later(operation, recv_use, at(recvbuf, displs[i] * recv_use.extent), count, offset);
            offset += operation.recv_bytes[i];
        }
        return operation.recv_staging.address;
    }

    auto host_arguments() const {
        return std::tuple(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm);
    }

    offpath_status_t start(OffloadedRequest& operation) {
        void* recv = place_blocks(operation);
        if (recv == nullptr && !recv_use.contiguous()) return OFFPATH_ERR_MEMORY;
        const auto rank = static_cast<std::size_t>(team->rank);
        const void* send = OFFPATH_IN_PLACE;  // NOLINT(performance-no-int-to-ptr)
        if (in_place()) {
            const void* own = at(recvbuf, displs[rank] * recv_use.extent);
            if (!put_own_block(recv_use, own, static_cast<std::size_t>(recvcounts[rank]), recv,
                               operation.recv_offsets[rank])) {
                return OFFPATH_ERR_MEMORY;
            }
        } else if (sendcount > 0) {
            send = bytes_to_send(operation, send_use, sendbuf, static_cast<std::size_t>(sendcount));
            if (send == nullptr) return OFFPATH_ERR_MEMORY;
        } else {
            send = sendbuf;
        }
        from_others = decided_by - own_bytes();
        return tell_device(operation, {DevicePart::Shape::allgatherv, sent_from(send), recv}, [&] {
            return offpath_iallgatherv(device_team, send, recv, operation.recv_bytes.data(),
                                       operation.recv_offsets.data(), &operation.device);
        });
    }

    void keep(Kept& kept) {
        if (!in_place()) kept.type(sendtype);
        kept.type(recvtype);
        kept.array(recvcounts, team->size);
        kept.array(displs, team->size);
    }
};

}  // namespace

COLLECTIVE(Allgatherv, Allgatherv, allgatherv,
           (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf,
            const Count recvcounts[], const Displacement displs[], MPI_Datatype recvtype, MPI_Comm comm),
           (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm))
