// MPI_Reduce_scatter and MPI_Reduce_scatter_block in their forms.
#include "collectives/common/call.h"
#include "collectives/common/pairs.h"
#include "datatypes/reductions.h"

using namespace offpath::mpi;

namespace {

struct ReduceScatter : Call {
    static constexpr Op op = Op::ireduce_scatter;

    const void* sendbuf;
    void* recvbuf;
    Counts recvcounts;
    MPI_Datatype type;
    MPI_Op operation;
    MPI_Comm comm;
    Reducer reducer{};

    bool plausible() {
        if (!plausible_counts(recvcounts, team->size)) return false;
        const std::int64_t arriving = team->size > 0 ? recvcounts[team->rank] : 0;
        if (!plausible_operands(sendbuf, recvbuf, arriving, type, operation)) {
            return false;
        }
        std::size_t elements = 0;
        for (int i = 0; i < team->size; ++i)
            elements += static_cast<std::size_t>(recvcounts[i]);
        decided_by = elements * type_bytes(type);
        host_reason = find_reducer(type, operation, reducer);
        order_matters = host_reason == HostReason::none && depends_on_order(reducer);
        return true;
    }

    bool prepare() { return true; }

    auto host_arguments() const { return std::tuple(sendbuf, recvbuf, recvcounts, type, operation, comm); }

    offpath_status_t start(OffloadedRequest& started) {
        const bool in_place = sendbuf == MPI_IN_PLACE;
        const std::size_t own = bytes_in_memory(type, static_cast<std::size_t>(recvcounts[team->rank]));
        const std::size_t all =
            bytes_in_memory(type, decided_by / std::max<std::size_t>(1, type_bytes(type)));
        const void* send = in_place ? OFFPATH_IN_PLACE : operand_to_send(started, sendbuf, all);
        void* result = place_of_result(started, recvbuf, in_place ? all : 0, own);
        if ((all > 0 && send == nullptr) || (own > 0 && result == nullptr)) return OFFPATH_ERR_MEMORY;
        // They count elements, not bytes; the array was only borrowed.
        started.recv_bytes.clear();
        for (int i = 0; i < team->size; ++i)
            started.recv_bytes.push_back(static_cast<std::size_t>(recvcounts[i]));
        from_others = static_cast<std::size_t>(recvcounts[team->rank]) * type_bytes(type);
        const DevicePart part{
            DevicePart::Shape::reduce_scatter, sent_from(send), result, 0, 0, type, operation};
        return tell_device(started, part, [&] {
            return offpath_ireduce_scatter(device_team, send, result, started.recv_bytes.data(), reducer.type,
                                           reducer.reduction, &started.device);
        });
    }

    void keep(Kept& kept) { kept.array(recvcounts, team->size); }
};

struct ReduceScatterBlock : Call {
    static constexpr Op op = Op::ireduce_scatter_block;

    const void* sendbuf;
    void* recvbuf;
    std::int64_t recvcount;
    MPI_Datatype type;
    MPI_Op operation;
    MPI_Comm comm;
    Reducer reducer{};

    bool plausible() {
        if (!plausible_operands(sendbuf, recvbuf, recvcount, type, operation) || recvcount < 0) return false;
        from_others = static_cast<std::size_t>(recvcount) * type_bytes(type);
        decided_by = from_others * static_cast<std::size_t>(team->size);
        host_reason = find_reducer(type, operation, reducer);
        order_matters = host_reason == HostReason::none && depends_on_order(reducer);
        return true;
    }

    bool prepare() { return true; }

    auto host_arguments() const { return std::tuple(sendbuf, recvbuf, recvcount, type, operation, comm); }

    offpath_status_t start(OffloadedRequest& started) {
        const bool in_place = sendbuf == MPI_IN_PLACE;
        const std::size_t own = bytes_in_memory(type, static_cast<std::size_t>(recvcount));
        const std::size_t all = own * static_cast<std::size_t>(team->size);
        const void* send = in_place ? OFFPATH_IN_PLACE : operand_to_send(started, sendbuf, all);
        void* result = place_of_result(started, recvbuf, in_place ? all : 0, own);
        if (own > 0 && (send == nullptr || result == nullptr)) return OFFPATH_ERR_MEMORY;
        const auto elements = static_cast<std::size_t>(recvcount);
        const DevicePart part{
            DevicePart::Shape::reduce_scatter_block, sent_from(send), result, elements, 0, type, operation};
        return tell_device(started, part, [&] {
            return offpath_ireduce_scatter_block(device_team, send, result, elements, reducer.type,
                                                 reducer.reduction, &started.device);
        });
    }

    void keep(Kept&) {}
};

}  // namespace

COLLECTIVE(ReduceScatter, Reduce_scatter, reduce_scatter,
           (const void* sendbuf, void* recvbuf, const Count recvcounts[], MPI_Datatype type, MPI_Op op,
            MPI_Comm comm),
           (sendbuf, recvbuf, recvcounts, type, op, comm))
COLLECTIVE(ReduceScatterBlock, Reduce_scatter_block, reduce_scatter_block,
           (const void* sendbuf, void* recvbuf, Count recvcount, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (sendbuf, recvbuf, recvcount, type, op, comm))
