// MPI_Allreduce, MPI_Scan and MPI_Exscan in their forms: every rank contributes and receives `count`
// elements.
#include "collectives/common/call.h"
#include "datatypes/reductions.h"

using namespace offpath::mpi;

namespace {

using Start = offpath_status_t (*)(offpath_team_h, const void*, void*, std::size_t, offpath_type_t,
                                   offpath_reduction_t, offpath_request_h*);

template <Op which, Start start_it, DevicePart::Shape shape>
struct Everywhere : Call {
    static constexpr Op op = which;

    const void* sendbuf;
    void* recvbuf;
    std::int64_t count;
    MPI_Datatype type;
    MPI_Op operation;
    MPI_Comm comm;
    Reducer reducer{};

    // In an exclusive scan, rank 0 only contributes, and its receive buffer has no meaning.
    bool gives_only() const { return op == Op::iexscan && team->rank == 0 && sendbuf != MPI_IN_PLACE; }

    bool plausible() {
        const std::int64_t arriving = gives_only() ? 0 : count;
        const void* result = gives_only() ? nullptr : recvbuf;
        if (!plausible_operands(sendbuf, result, arriving, type, operation) || count < 0) return false;
        decided_by = static_cast<std::size_t>(count) * type_bytes(type);
        host_reason = find_reducer(type, operation, reducer);
        order_matters = host_reason == HostReason::none && depends_on_order(reducer);
        return true;
    }

    std::uint64_t bytes_at_a_glance() const { return glance(count, type); }
    void remember() const { remember_bytes(type); }
    bool prepare() { return true; }

    auto host_arguments() const { return std::tuple(sendbuf, recvbuf, count, type, operation, comm); }

    offpath_status_t start(OffloadedRequest& started) {
        // In place: where nothing arrives, the operand does not change.
        const bool in_place = sendbuf == MPI_IN_PLACE;
        const std::size_t bytes = bytes_in_memory(type, static_cast<std::size_t>(count));
        const bool arrives = op != Op::iexscan || team->rank > 0;
        const void* send = OFFPATH_IN_PLACE;
        if (!in_place && !gives_only()) send = operand_to_send(started, sendbuf, bytes);
        void* result = gives_only() ? const_cast<void*>(sendbuf) : recvbuf;
        result = place_of_result(started, result, in_place || gives_only() ? bytes : 0, arrives ? bytes : 0);
        if (bytes > 0 && (send == nullptr || result == nullptr)) return OFFPATH_ERR_MEMORY;
        from_others = op == Op::iallreduce || team->rank > 0 ? decided_by : 0;
        const auto elements = static_cast<std::size_t>(count);
        const void* operand = gives_only() ? result : sent_from(send);
        return tell_device(started, {shape, operand, result, elements, 0, type, operation}, [&] {
            return start_it(device_team, send, result, elements, reducer.type, reducer.reduction,
                            &started.device);
        });
    }

    void keep(Kept&) {}
};

using Allreduce = Everywhere<Op::iallreduce, offpath_iallreduce, DevicePart::Shape::allreduce>;
using Scan = Everywhere<Op::iscan, offpath_iscan, DevicePart::Shape::scan>;
using Exscan = Everywhere<Op::iexscan, offpath_iexscan, DevicePart::Shape::exscan>;

}  // namespace

COLLECTIVE(Allreduce, Allreduce, allreduce,
           (const void* sendbuf, void* recvbuf, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (sendbuf, recvbuf, count, type, op, comm))
COLLECTIVE(Scan, Scan, scan,
           (const void* sendbuf, void* recvbuf, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (sendbuf, recvbuf, count, type, op, comm))
COLLECTIVE(Exscan, Exscan, exscan,
           (const void* sendbuf, void* recvbuf, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (sendbuf, recvbuf, count, type, op, comm))
