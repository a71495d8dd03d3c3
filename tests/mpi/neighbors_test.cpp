// Neighbourhood collectives compared with the host's MPI: over grids (open, periodic, with one or two ranks
// in a dimension), graphs and distributed graphs with neighbours that appear several times, are this rank
// itself, or are missing. All forms; blocks above and below the switch-over in one call.
#include <algorithm>
#include <array>

#include "forms.h"
#include "types.h"

namespace {

using Ints = std::vector<int>;

struct Around {
    MPI_Comm comm;
    std::string name;
    Ints sources, destinations;
};

int units_between(int from, int to, int shape) {
    switch (shape) {
        case 0:
            return 1 + (from * 3 + to * 5) % 4;
        case 1:
            return 200 + from + to;
        default:
            return (from + to) % 3 == 0 ? 0 : (from + to) % 2 == 0 ? 5 : 900;
    }
}
int units_from(int rank, int shape) {
    return shape == 0 ? 1 + rank % 3 : shape == 1 ? 300 + rank : rank % 2 == 0 ? 2 : 700;
}
int count(const check::Type& type, int units) {
    return units * 6 / type.ints_an_element;
}

Ints counts_of(const Ints& peers, const check::Type& type, const std::function<int(int)>& units) {
    Ints counts;
    for (const int peer : peers)
        counts.push_back(peer == MPI_PROC_NULL ? 1 : count(type, units(peer)));
    counts.push_back(0);  // an address even if there are none
    return counts;
}

// The blocks are in reversed order with gaps.
Ints places_of(const Ints& counts, int& elements) {
    Ints places(counts.size());
    elements = 1;
    for (std::size_t i = counts.size(); i-- > 0;) {
        places[i] = elements;
        elements += counts[i] + 1;
    }
    return places;
}

Ints filled(int elements, const check::Type& type, int seed) {
    return check::pattern(static_cast<std::size_t>(elements * type.span) + 1, seed);
}

void equal_blocks(const Around& a, const check::Type& send_type, const check::Type& recv_type, int units,
                  unsigned forms) {
    const int out = static_cast<int>(a.destinations.size());
    const int in = static_cast<int>(a.sources.size());
    const int send_count = count(send_type, units);
    const int recv_count = count(recv_type, units);
    const Ints send = filled(out * send_count + send_count, send_type, units);
    const Ints recv = filled(in * recv_count, recv_type, units + 1);
    const void* from = send.data();
    const std::string how =
        fmt::format(" on {}, {} to {}, {} units", a.name, send_type.name, recv_type.name, units);
    check::compare_forms("neighbor_allgather" + how, recv,
                         FORMS(Neighbor_allgather, neighbor_allgather, from, send_count, send_type.type, to,
                               recv_count, recv_type.type, a.comm),
                         forms);
    check::compare_forms("neighbor_alltoall" + how, recv,
                         FORMS(Neighbor_alltoall, neighbor_alltoall, from, send_count, send_type.type, to,
                               recv_count, recv_type.type, a.comm),
                         forms);
}

void different_blocks(const Around& a, const check::Type& send_type, const check::Type& recv_type, int shape,
                      unsigned forms) {
    const int me = check::rank_of(a.comm);
    int elements = 0;
    const Ints gathered = counts_of(a.sources, recv_type, [&](int peer) { return units_from(peer, shape); });
    const Ints gathered_places = places_of(gathered, elements);
    const Ints gather_recv = filled(elements, recv_type, shape);
    const int send_count = count(send_type, units_from(me, shape));
    const Ints mine = filled(send_count, send_type, shape + 1);
    const int* counts = gathered.data();
    const int* places = gathered_places.data();
    const void* from = mine.data();
    const std::string how =
        fmt::format(" on {}, {} to {}, shape {}", a.name, send_type.name, recv_type.name, shape);
    check::compare_forms("neighbor_allgatherv" + how, gather_recv,
                         FORMS(Neighbor_allgatherv, neighbor_allgatherv, from, send_count, send_type.type, to,
                               counts, places, recv_type.type, a.comm),
                         forms);

    const Ints sent =
        counts_of(a.destinations, send_type, [&](int peer) { return units_between(me, peer, shape); });
    const Ints sent_places = places_of(sent, elements);
    const Ints send = filled(elements, send_type, shape + 2);
    const Ints received =
        counts_of(a.sources, recv_type, [&](int peer) { return units_between(peer, me, shape); });
    const Ints received_places = places_of(received, elements);
    const Ints recv = filled(elements, recv_type, shape + 3);
    const int* sc = sent.data();
    const int* sp = sent_places.data();
    const int* rc = received.data();
    const int* rp = received_places.data();
    from = send.data();
    check::compare_forms("neighbor_alltoallv" + how, recv,
                         FORMS(Neighbor_alltoallv, neighbor_alltoallv, from, sc, sp, send_type.type, to, rc,
                               rp, recv_type.type, a.comm),
                         forms);

    // The same exchange with one type and a byte displacement for each block. Every other block is plain
    // ints.
    const auto by_bytes = [](const Ints& p, const check::Type& type) {
        std::vector<MPI_Aint> result;
        for (const int place : p)
            result.push_back(static_cast<MPI_Aint>(place) * type.span * static_cast<MPI_Aint>(sizeof(int)));
        return result;
    };
    const std::vector<MPI_Aint> send_offsets = by_bytes(sent_places, send_type);
    const std::vector<MPI_Aint> recv_offsets = by_bytes(received_places, recv_type);
    const std::vector<MPI_Datatype> send_types(sent.size(), send_type.type);
    std::vector<MPI_Datatype> recv_types(received.size(), recv_type.type);
    Ints w_counts = received;
    for (std::size_t i = 0; i < w_counts.size(); i += 2) {
        if (recv_type.ints_an_element == 1) continue;
        recv_types[i] = MPI_INT;
        w_counts[i] *= recv_type.ints_an_element;
    }
    const MPI_Aint* so = send_offsets.data();
    const MPI_Aint* ro = recv_offsets.data();
    const MPI_Datatype* st = send_types.data();
    const MPI_Datatype* rt = recv_types.data();
    const int* wc = w_counts.data();
    check::compare_forms(
        "neighbor_alltoallw" + how, recv,
        FORMS(Neighbor_alltoallw, neighbor_alltoallw, from, sc, so, st, to, wc, ro, rt, a.comm), forms);
}

void exercise(const Around& a, const std::vector<check::Type>& types) {
    equal_blocks(a, types[0], types[0], 400, check::every_form);
    equal_blocks(a, types[4], types[6], 30, check::started);
    equal_blocks(a, types[1], types[3], 1, check::started | check::repeated);
    for (int shape = 0; shape < 3; ++shape) {
        different_blocks(a, types[0], types[0], shape, check::every_form);
        different_blocks(a, types[5], types[7], shape, check::started);
    }
}

Around grid(const Ints& dims, const Ints& periods, int reorder) {
    Around a;
    const int n = static_cast<int>(dims.size());
    MPI_Cart_create(MPI_COMM_WORLD, n, dims.data(), periods.data(), reorder, &a.comm);
    a.name = fmt::format("a grid of {}, periodic {}", fmt::join(dims, "x"), fmt::join(periods, ","));
    for (int d = 0; d < n; ++d) {
        int below = 0;
        int above = 0;
        PMPI_Cart_shift(a.comm, d, 1, &below, &above);
        a.sources.push_back(below);
        a.sources.push_back(above);
    }
    a.destinations = a.sources;
    return a;
}

Around graph() {
    // A ring in which every rank also has rank 0 as a neighbour, and rank 0 has all ranks.
    const int ranks = check::size_of(MPI_COMM_WORLD);
    Ints index, edges;
    for (int r = 0; r < ranks; ++r) {
        edges.push_back((r + 1) % ranks);
        edges.push_back((r + ranks - 1) % ranks);
        for (int other = 0; other < ranks; ++other) {
            if (other != r && (r == 0 || other == 0)) edges.push_back(other);
        }
        index.push_back(static_cast<int>(edges.size()));
    }
    Around a;
    MPI_Graph_create(MPI_COMM_WORLD, ranks, index.data(), edges.data(), 0, &a.comm);
    a.name = "a graph";
    const int me = check::rank_of(a.comm);
    const int first = me == 0 ? 0 : index[static_cast<std::size_t>(me) - 1];
    a.sources.assign(edges.begin() + first, edges.begin() + index[static_cast<std::size_t>(me)]);
    a.destinations = a.sources;
    return a;
}

// Edges (i, i + 1) three times, (i, i) once for odd i, (i, 0) for all; rank 1 receives from no rank.
Around distributed_graph() {
    const int ranks = check::size_of(MPI_COMM_WORLD);
    const int me = check::rank_of(MPI_COMM_WORLD);
    std::vector<std::array<int, 2>> edges;
    for (int r = 0; r < ranks; ++r) {
        edges.push_back({r, 0});
        for (int i = 0; i < 3; ++i)
            edges.push_back({r, (r + 1) % ranks});
        if (r % 2 == 1) edges.push_back({r, r});
    }
    std::erase_if(edges, [&](const auto& edge) { return edge[1] == 1; });
    Around a;
    for (const auto& [from, to] : edges) {
        if (to == me) a.sources.push_back(from);
        if (from == me) a.destinations.push_back(to);
    }
    Ints unused(1);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, static_cast<int>(a.sources.size()),
                                   a.sources.empty() ? unused.data() : a.sources.data(), MPI_UNWEIGHTED,
                                   static_cast<int>(a.destinations.size()),
                                   a.destinations.empty() ? unused.data() : a.destinations.data(),
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &a.comm);
    a.name = "a distributed graph";
    return a;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int ranks = check::size_of(MPI_COMM_WORLD);
    std::vector<check::Type> types = check::make_types();
    std::vector<Around> all;
    for (const int dimensions : {1, 2, 3}) {
        Ints dims(static_cast<std::size_t>(dimensions), 0);
        MPI_Dims_create(ranks, dimensions, dims.data());
        all.push_back(grid(dims, Ints(dims.size(), 1), 0));
        Ints mixed(dims.size(), 0);
        mixed.back() = dimensions == 2 ? 1 : 0;
        all.push_back(grid(dims, mixed, 1));
    }
    all.push_back(graph());
    all.push_back(distributed_graph());
    for (Around& a : all) {
        exercise(a, types);
        MPI_Comm_free(&a.comm);
    }
    check::free_types(types);
    return check::finish();
}
