#include "collectives/common/call.h"
#include "datatypes/reductions.h"

using namespace offpath::mpi;

namespace {

struct Reduce : Call {
    static constexpr Op op = Op::ireduce;

    const void* sendbuf;
    void* recvbuf;
    std::int64_t count;
    MPI_Datatype type;
    MPI_Op operation;
    int root;
    MPI_Comm comm;
    Reducer reducer{};

    bool is_root() const { return root == team->rank; }

    bool plausible() {
        const void* result = is_root() ? recvbuf : nullptr;
        if (!plausible_operands(sendbuf, result, count, type, operation) || count < 0 || root < 0)
            return false;
        if (sendbuf == MPI_IN_PLACE && !is_root()) return false;
        decided_by = static_cast<std::size_t>(count) * type_bytes(type);
        host_reason = find_reducer(type, operation, reducer);
        order_matters = host_reason == HostReason::none && depends_on_order(reducer);
        return true;
    }

    std::uint64_t bytes_at_a_glance() const { return glance(count, type); }
    void remember() const { remember_bytes(type); }
    bool prepare() { return root < team->size; }

    auto host_arguments() const { return std::tuple(sendbuf, recvbuf, count, type, operation, root, comm); }

    offpath_status_t start(OffloadedRequest& started) {
        const bool in_place = sendbuf == MPI_IN_PLACE;
        const std::size_t bytes = bytes_in_memory(type, static_cast<std::size_t>(count));
        const void* send = in_place ? OFFPATH_IN_PLACE : operand_to_send(started, sendbuf, bytes);
        void* result = is_root() ? place_of_result(started, recvbuf, in_place ? bytes : 0, bytes) : nullptr;
        if (bytes > 0 && (send == nullptr || (is_root() && result == nullptr))) return OFFPATH_ERR_MEMORY;
        from_others = is_root() ? decided_by : 0;
        const auto elements = static_cast<std::size_t>(count);
        const DevicePart part{
            DevicePart::Shape::reduce, sent_from(send), result, elements, root, type, operation};
        return tell_device(started, part, [&] {
            return offpath_ireduce(device_team, send, result, elements, reducer.type, reducer.reduction,
                                   static_cast<std::uint32_t>(root), &started.device);
        });
    }

    void keep(Kept&) {}
};

}  // namespace

COLLECTIVE(Reduce, Reduce, reduce,
           (const void* sendbuf, void* recvbuf, Count count, MPI_Datatype type, MPI_Op op, int root,
            MPI_Comm comm),
           (sendbuf, recvbuf, count, type, op, root, comm))
