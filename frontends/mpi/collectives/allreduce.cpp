// MPI_Allreduce, MPI_Scan and MPI_Exscan in their forms: every rank gives and gets `count` elements.
#include "call.h"
#include "reductions.h"

using namespace offpath::mpi;

namespace {

using Start = offpath_status_t (*)(offpath_team_h, const void*, void*, std::size_t, offpath_type_t,
                                   offpath_reduction_t, offpath_request_h*);

template <Op which, Start start_it>
struct Everywhere : Call {
    static constexpr Op op = which;
    static constexpr bool each_pair_decides = false;

    const void* sendbuf;
    void* recvbuf;
    std::int64_t count;
    MPI_Datatype type;
    MPI_Op operation;
    MPI_Comm comm;
    Reducer reducer{};

    bool plausible() {
        if (!plausible_operands(sendbuf, recvbuf, type, operation) || count < 0) return false;
        decided_by = static_cast<std::size_t>(count) * type_bytes(type);
        host_reason = find_reducer(type, operation, reducer);
        return true;
    }

    bool prepare() { return true; }

    offpath_status_t start(Operation& started) {
        const void* send = sendbuf == MPI_IN_PLACE ? OFFPATH_IN_PLACE : sendbuf;
        from_others = op == Op::iallreduce || team->rank > 0 ? decided_by : 0;
        return start_on_device([&] {
            return start_it(team->handle, send, recvbuf, static_cast<std::size_t>(count), reducer.type,
                            reducer.reduction, &started.device);
        });
    }

    void keep(Kept&) {}
};

using Allreduce = Everywhere<Op::iallreduce, offpath_iallreduce>;
using Scan = Everywhere<Op::iscan, offpath_iscan>;
using Exscan = Everywhere<Op::iexscan, offpath_iexscan>;

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
