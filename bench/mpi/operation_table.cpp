// The rows of operations.h: what each operation is called, how it lays out its buffers, how it is posted.
#include <algorithm>

#include "layouts.h"
#include "operations.h"

namespace mpi_bench {

namespace {

constexpr int kTag = 7;
using Requests = std::vector<MPI_Request>;

MPI_Request* add(Requests& requests) {
    return &requests.emplace_back(MPI_REQUEST_NULL);
}

int doubles(const Operation& op) {
    return op.bytes() / static_cast<int>(sizeof(double));
}

const std::vector<MPI_Datatype>& byte_types(std::size_t count) {
    static std::vector<MPI_Datatype> types;
    types.resize(std::max(types.size(), count), MPI_BYTE);
    return types;
}

template <Layout (*layout)(std::size_t, int, int, bool), bool flag>
Layout with(std::size_t bytes, int rank, int ranks) {
    return layout(bytes, rank, ranks, flag);
}

const std::vector<OperationEntry> kCollectives = {
    {"ialltoall", "from each rank to each rank", 1, with<all_to_all, false>,
     [](const Operation& op, Requests& requests) {
         MPI_Ialltoall(op.send(), op.bytes(), MPI_BYTE, op.receive(), op.bytes(), MPI_BYTE, op.comm(),
                       add(requests));
     }},
    {"ialltoallv", "from each rank to each rank", 1, with<all_to_all, true>,
     [](const Operation& op, Requests& requests) {
         const Layout& at = op.layout();
         MPI_Ialltoallv(op.send(), at.counts.data(), at.send_offsets.data(), MPI_BYTE, op.receive(),
                        at.counts.data(), at.receive_offsets.data(), MPI_BYTE, op.comm(), add(requests));
     }},
    {"ialltoallw", "from each rank to each rank", 1, with<all_to_all, true>,
     [](const Operation& op, Requests& requests) {
         const Layout& at = op.layout();
         const MPI_Datatype* types = byte_types(at.counts.size()).data();
         MPI_Ialltoallw(op.send(), at.counts.data(), at.send_offsets.data(), types, op.receive(),
                        at.counts.data(), at.receive_offsets.data(), types, op.comm(), add(requests));
     }},
    {"iallgather", "contributed by each rank", 1, with<all_gather, false>,
     [](const Operation& op, Requests& requests) {
         MPI_Iallgather(op.send(), op.bytes(), MPI_BYTE, op.receive(), op.bytes(), MPI_BYTE, op.comm(),
                        add(requests));
     }},
    {"iallgatherv", "contributed by each rank", 1, with<all_gather, true>,
     [](const Operation& op, Requests& requests) {
         const Layout& at = op.layout();
         MPI_Iallgatherv(op.send(), op.bytes(), MPI_BYTE, op.receive(), at.counts.data(),
                         at.receive_offsets.data(), MPI_BYTE, op.comm(), add(requests));
     }},
    {"ibcast", "in the message, from rank 0", 1, broadcast,
     [](const Operation& op, Requests& requests) {
         MPI_Ibcast(op.rank() == 0 ? op.send() : op.receive(), op.bytes(), MPI_BYTE, 0, op.comm(),
                    add(requests));
     }},
    {"ibarrier", "ignored", 1, [](std::size_t, int, int) { return Layout{}; },
     [](const Operation& op, Requests& requests) { MPI_Ibarrier(op.comm(), add(requests)); }},
    {"igather", "from each rank to rank 0", 1, with<gather, false>,
     [](const Operation& op, Requests& requests) {
         MPI_Igather(op.send(), op.bytes(), MPI_BYTE, op.receive(), op.bytes(), MPI_BYTE, 0, op.comm(),
                     add(requests));
     }},
    {"igatherv", "from each rank to rank 0", 1, with<gather, true>,
     [](const Operation& op, Requests& requests) {
         const Layout& at = op.layout();
         MPI_Igatherv(op.send(), op.bytes(), MPI_BYTE, op.receive(), at.counts.data(),
                      at.receive_offsets.data(), MPI_BYTE, 0, op.comm(), add(requests));
     }},
    {"iscatter", "from rank 0 to each rank", 1, with<scatter, false>,
     [](const Operation& op, Requests& requests) {
         MPI_Iscatter(op.send(), op.bytes(), MPI_BYTE, op.receive(), op.bytes(), MPI_BYTE, 0, op.comm(),
                      add(requests));
     }},
    {"iscatterv", "from rank 0 to each rank", 1, with<scatter, true>,
     [](const Operation& op, Requests& requests) {
         const Layout& at = op.layout();
         MPI_Iscatterv(op.send(), at.counts.data(), at.send_offsets.data(), MPI_BYTE, op.receive(),
                       op.bytes(), MPI_BYTE, 0, op.comm(), add(requests));
     }},
};

const std::vector<OperationEntry> kReductions = {
    {"iallreduce", "in each rank's vector of doubles, which are summed", sizeof(double), all_reduce,
     [](const Operation& op, Requests& requests) {
         MPI_Iallreduce(op.send(), op.receive(), doubles(op), MPI_DOUBLE, MPI_SUM, op.comm(), add(requests));
     }},
    {"ireduce", "in each rank's vector of doubles, summed at rank 0", sizeof(double), reduce,
     [](const Operation& op, Requests& requests) {
         MPI_Ireduce(op.send(), op.receive(), doubles(op), MPI_DOUBLE, MPI_SUM, 0, op.comm(), add(requests));
     }},
    {"ireduce_scatter", "of the sum of doubles for each rank", sizeof(double), reduce_scatter,
     [](const Operation& op, Requests& requests) {
         MPI_Ireduce_scatter(op.send(), op.receive(), op.layout().counts.data(), MPI_DOUBLE, MPI_SUM,
                             op.comm(), add(requests));
     }},
    {"ireduce_scatter_block", "of the sum of doubles for each rank", sizeof(double), reduce_scatter,
     [](const Operation& op, Requests& requests) {
         MPI_Ireduce_scatter_block(op.send(), op.receive(), doubles(op), MPI_DOUBLE, MPI_SUM, op.comm(),
                                   add(requests));
     }},
    {"iscan", "in each rank's vector of doubles, summed up to its own", sizeof(double), with<scan, true>,
     [](const Operation& op, Requests& requests) {
         MPI_Iscan(op.send(), op.receive(), doubles(op), MPI_DOUBLE, MPI_SUM, op.comm(), add(requests));
     }},
    {"iexscan", "in each rank's vector of doubles, summed before its own", sizeof(double), with<scan, false>,
     [](const Operation& op, Requests& requests) {
         MPI_Iexscan(op.send(), op.receive(), doubles(op), MPI_DOUBLE, MPI_SUM, op.comm(), add(requests));
     }},
};

const std::vector<OperationEntry> kNeighbours = {
    {"ineighbor_allgather", "from each rank to both neighbours in a ring", 1, neighbour_all_gather,
     [](const Operation& op, Requests& requests) {
         MPI_Ineighbor_allgather(op.send(), op.bytes(), MPI_BYTE, op.receive(), op.bytes(), MPI_BYTE,
                                 op.comm(), add(requests));
     }},
    {"ineighbor_alltoall", "from each rank to each neighbour in a ring", 1, neighbour_all_to_all,
     [](const Operation& op, Requests& requests) {
         MPI_Ineighbor_alltoall(op.send(), op.bytes(), MPI_BYTE, op.receive(), op.bytes(), MPI_BYTE,
                                op.comm(), add(requests));
     }},
    {"ineighbor_alltoallv", "from each rank to each neighbour in a ring", 1, neighbour_all_to_all,
     [](const Operation& op, Requests& requests) {
         const Layout& at = op.layout();
         MPI_Ineighbor_alltoallv(op.send(), at.counts.data(), at.send_offsets.data(), MPI_BYTE, op.receive(),
                                 at.counts.data(), at.receive_offsets.data(), MPI_BYTE, op.comm(),
                                 add(requests));
     }},
};

const std::vector<OperationEntry> kMessages = {
    {"isend", "from each rank to the next (MPI_Isend and MPI_Irecv in a ring)", 1, ring,
     [](const Operation& op, Requests& requests) {
         MPI_Irecv(op.receive(), op.bytes(), MPI_BYTE, previous_of(op.rank(), op.ranks()), kTag, op.comm(),
                   add(requests));
         MPI_Isend(op.send(), op.bytes(), MPI_BYTE, next_of(op.rank(), op.ranks()), kTag, op.comm(),
                   add(requests));
     }},
};

}  // namespace

const std::vector<OperationEntry>& operations() {
    static const std::vector<OperationEntry> all = [] {
        std::vector<OperationEntry> made;
        for (const auto* group : {&kCollectives, &kReductions, &kNeighbours, &kMessages})
            made.insert(made.end(), group->begin(), group->end());
        return made;
    }();
    return all;
}

}  // namespace mpi_bench
