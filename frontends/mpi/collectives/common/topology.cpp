#include "topology.h"

#include <algorithm>
#include <array>
#include <mutex>

namespace offpath::mpi {
namespace {

void read_grid(MPI_Comm comm, Neighbours& neighbours) {
    int dimensions = 0;
    PMPI_Cartdim_get(comm, &dimensions);
    for (int d = 0; d < dimensions; ++d) {
        int below = MPI_PROC_NULL;
        int above = MPI_PROC_NULL;
        PMPI_Cart_shift(comm, d, 1, &below, &above);
        neighbours.sources.push_back(below);
        neighbours.sources.push_back(above);
    }
    neighbours.destinations = neighbours.sources;
    neighbours.grid = true;
}

void read_graph(MPI_Comm comm, Neighbours& neighbours) {
    int rank = 0;
    int count = 0;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Graph_neighbors_count(comm, rank, &count);
    neighbours.sources.resize(static_cast<std::size_t>(count));
    PMPI_Graph_neighbors(comm, rank, count, neighbours.sources.data());
    neighbours.destinations = neighbours.sources;
}

void read_distributed_graph(MPI_Comm comm, Neighbours& neighbours) {
    int in = 0;
    int out = 0;
    int weighted = 0;
    PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    // One more than needed, because empty arrays have no address.
    std::vector<int> sources(static_cast<std::size_t>(in) + 1), source_weights(sources.size());
    std::vector<int> destinations(static_cast<std::size_t>(out) + 1), weights(destinations.size());
    PMPI_Dist_graph_neighbors(comm, in, sources.data(),
                              weighted != 0 ? source_weights.data() : MPI_UNWEIGHTED, out,
                              destinations.data(), weighted != 0 ? weights.data() : MPI_UNWEIGHTED);
    neighbours.sources.assign(sources.begin(), sources.end() - 1);
    neighbours.destinations.assign(destinations.begin(), destinations.end() - 1);
}

constexpr std::array<Op, 3> family = {Op::ineighbor_alltoall, Op::ineighbor_alltoallv,
                                      Op::ineighbor_alltoallw};

void exchange_with_myself(Op op, Form form, MPI_Comm grid, const int* send, int* recv) {
    const std::array<int, 2> counts = {1, 1};
    const std::array<int, 2> places = {0, 1};
    const std::array<MPI_Aint, 2> offsets = {0, sizeof(int)};
    const std::array<MPI_Datatype, 2> types = {MPI_INT, MPI_INT};
    MPI_Request request = MPI_REQUEST_NULL;
    const bool blocking = form == Form::blocking;
    if (op == Op::ineighbor_alltoall) {
        if (blocking) PMPI_Neighbor_alltoall(send, 1, MPI_INT, recv, 1, MPI_INT, grid);
        if (!blocking) PMPI_Ineighbor_alltoall(send, 1, MPI_INT, recv, 1, MPI_INT, grid, &request);
    } else if (op == Op::ineighbor_alltoallv) {
        if (blocking)
            PMPI_Neighbor_alltoallv(send, counts.data(), places.data(), MPI_INT, recv, counts.data(),
                                    places.data(), MPI_INT, grid);
        if (!blocking)
            PMPI_Ineighbor_alltoallv(send, counts.data(), places.data(), MPI_INT, recv, counts.data(),
                                     places.data(), MPI_INT, grid, &request);
    } else {
        if (blocking)
            PMPI_Neighbor_alltoallw(send, counts.data(), offsets.data(), types.data(), recv, counts.data(),
                                    offsets.data(), types.data(), grid);
        if (!blocking)
            PMPI_Ineighbor_alltoallw(send, counts.data(), offsets.data(), types.data(), recv, counts.data(),
                                     offsets.data(), types.data(), grid, &request);
    }
    PMPI_Wait(&request, MPI_STATUS_IGNORE);
}

struct Crossings {
    std::array<bool, family.size()> nonblocking{};
    std::array<bool, family.size()> blocking{};
};

Crossings ask_host() {
    Crossings crossings;
    const int one = 1;
    MPI_Comm grid = MPI_COMM_NULL;
    PMPI_Cart_create(MPI_COMM_SELF, 1, &one, &one, 0, &grid);
    for (std::size_t i = 0; i < family.size(); ++i) {
        const std::array<int, 2> send = {1, 2};
        std::array<int, 2> recv = {0, 0};
        exchange_with_myself(family[i], Form::nonblocking, grid, send.data(), recv.data());
        crossings.nonblocking[i] = recv[0] == 2;
        exchange_with_myself(family[i], Form::blocking, grid, send.data(), recv.data());
        crossings.blocking[i] = recv[0] == 2;
    }
    PMPI_Comm_free(&grid);
    return crossings;
}

}  // namespace

Owned<Neighbours> read_neighbours(MPI_Comm comm) {
    auto neighbours = make_owned<Neighbours>();
    int kind = MPI_UNDEFINED;
    PMPI_Topo_test(comm, &kind);
    switch (kind) {
        case MPI_CART:
            read_grid(comm, *neighbours);
            return neighbours;
        case MPI_GRAPH:
            read_graph(comm, *neighbours);
            return neighbours;
        case MPI_DIST_GRAPH:
            read_distributed_graph(comm, *neighbours);
            return neighbours;
        default:
            return nullptr;
    }
}

bool host_crosses(Op op, Form form) {
    const auto* const member = std::find(family.begin(), family.end(), op);
    if (member == family.end()) return false;
    static const Crossings crossings = ask_host();
    const auto i = static_cast<std::size_t>(member - family.begin());
    return form == Form::blocking ? crossings.blocking[i] : crossings.nonblocking[i];
}

}  // namespace offpath::mpi
