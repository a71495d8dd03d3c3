// The operations of operations.h: the collectives, and messages.
#include "layouts.h"
#include "operations.h"
#include "shapes.h"

namespace mpi_bench {

namespace {

constexpr int kRingTag = 7;

void post_to_next(const Operation& op, std::vector<MPI_Request>& requests) {
    MPI_Irecv(op.receive(), op.bytes(), MPI_BYTE, previous_of(op.rank(), op.ranks()), kRingTag, op.comm(),
              add(requests));
    MPI_Isend(op.send(), op.bytes(), MPI_BYTE, next_of(op.rank(), op.ranks()), kRingTag, op.comm(),
              add(requests));
}

}  // namespace

const std::vector<OperationEntry>& operations() {
    static const std::vector<OperationEntry> all = [] {
        std::vector<OperationEntry> made = collectives();
        made.push_back({"isend", shapes::ring, false, post_to_next});
        return made;
    }();
    return all;
}

}  // namespace mpi_bench
