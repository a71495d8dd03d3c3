// Every offloaded operation compared with the host's MPI: the same call once through MPI_ and once through
// PMPI_. The whole receive buffers are compared, gaps included, over datatypes at both ends, counts,
// in-place, roots and communicators.
#include <functional>

#include "check.h"
#include "kill_daemon.h"
#include "types.h"

namespace {

using Ints = std::vector<int>;

struct Case {
    MPI_Comm comm;
    std::string name;
    const check::Type& send;
    const check::Type& recv;
    int units;  // times six ints a block

    int count(const check::Type& type) const { return units * 6 / type.ints_an_element; }
    std::size_t span(const check::Type& type) const {
        return static_cast<std::size_t>(count(type)) * static_cast<std::size_t>(type.span);
    }
};

// Runs `call` on the host's MPI and offloaded, each with a copy of `recv`.
using Call = std::function<int(int* recv, MPI_Request* request, bool offloaded)>;
void compare(const Case& c, const std::string& op, const Ints& recv, const Call& call) {
    check::kill_if_due(check::rank_of(MPI_COMM_WORLD));
    Ints expected = recv;
    Ints got = recv;
    MPI_Request request = MPI_REQUEST_NULL;
    call(expected.data(), &request, false);
    PMPI_Wait(&request, MPI_STATUS_IGNORE);
    call(got.data(), &request, true);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check::that(request == MPI_REQUEST_NULL, "{}: request not null", op);
    check::that(got == expected, "{} on {}, {} to {}, {} units", op, c.name, c.send.name, c.recv.name,
                c.units);
}

void alltoall(const Case& c, bool in_place) {
    const auto ranks = static_cast<std::size_t>(check::size_of(c.comm));
    const Ints send = check::pattern(ranks * c.span(c.send) + 1, c.units);
    const Ints recv = check::pattern(ranks * c.span(c.recv) + 1, c.units + 1);
    const void* from = in_place ? MPI_IN_PLACE : static_cast<const void*>(send.data());
    compare(c, in_place ? "ialltoall in place" : "ialltoall", recv,
            [&](int* to, MPI_Request* request, bool offloaded) {
                return (offloaded ? MPI_Ialltoall : PMPI_Ialltoall)(
                    from, c.count(c.send), c.send.type, to, c.count(c.recv), c.recv.type, c.comm, request);
            });
}

void allgather(const Case& c, bool in_place) {
    const auto ranks = static_cast<std::size_t>(check::size_of(c.comm));
    const Ints send = check::pattern(c.span(c.send) + 1, c.units);
    const Ints recv = check::pattern(ranks * c.span(c.recv) + 1, c.units + 1);
    const void* from = in_place ? MPI_IN_PLACE : static_cast<const void*>(send.data());
    compare(c, in_place ? "iallgather in place" : "iallgather", recv,
            [&](int* to, MPI_Request* request, bool offloaded) {
                return (offloaded ? MPI_Iallgather : PMPI_Iallgather)(
                    from, c.count(c.send), c.send.type, to, c.count(c.recv), c.recv.type, c.comm, request);
            });
}

// Blocks of different sizes, some of them empty, in reversed places with gaps.
void allgatherv(const Case& c, bool in_place) {
    const int ranks = check::size_of(c.comm);
    const int rank = check::rank_of(c.comm);
    const auto units_of = [&](int r) { return r % 3 == 1 ? 0 : c.units + r; };
    std::vector<int> counts, displs(static_cast<std::size_t>(ranks));
    for (int r = 0; r < ranks; ++r)
        counts.push_back(units_of(r) * 6 / c.recv.ints_an_element);
    int place = 1;
    for (int r = ranks - 1; r >= 0; --r) {
        displs[static_cast<std::size_t>(r)] = place;
        place += counts[static_cast<std::size_t>(r)] + 1;
    }
    const int send_count = units_of(rank) * 6 / c.send.ints_an_element;
    const Ints send = check::pattern(static_cast<std::size_t>(send_count * c.send.span) + 1, c.units);
    const Ints recv = check::pattern(static_cast<std::size_t>(place * c.recv.span) + 1, c.units + 1);
    const void* from = in_place ? MPI_IN_PLACE : static_cast<const void*>(send.data());
    compare(c, in_place ? "iallgatherv in place" : "iallgatherv", recv,
            [&](int* to, MPI_Request* request, bool offloaded) {
                return (offloaded ? MPI_Iallgatherv : PMPI_Iallgatherv)(from, send_count, c.send.type, to,
                                                                        counts.data(), displs.data(),
                                                                        c.recv.type, c.comm, request);
            });
}

void bcast(const Case& c, int root) {
    const bool is_root = check::rank_of(c.comm) == root;
    const check::Type& mine = is_root ? c.send : c.recv;
    const Ints buffer = check::pattern(c.span(mine) + 1, c.units);
    compare(c, fmt::format("ibcast from {}", root), buffer,
            [&](int* data, MPI_Request* request, bool offloaded) {
                return (offloaded ? MPI_Ibcast : PMPI_Ibcast)(data, c.count(mine), mine.type, root, c.comm,
                                                              request);
            });
}

void all_operations(const Case& c) {
    for (const bool in_place : {false, true}) {
        alltoall(c, in_place);
        allgather(c, in_place);
        allgatherv(c, in_place);
    }
    bcast(c, 0);
    bcast(c, check::size_of(c.comm) - 1);
}

// MPI_BOTTOM with absolute addresses. Only the datatype knows where the data lie.
void absolute_addresses() {
    int value = check::rank_of(MPI_COMM_WORLD) == 0 ? 4711 : 0;
    const int one = 1;
    MPI_Aint address = 0;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    PMPI_Get_address(&value, &address);
    PMPI_Type_create_hindexed(1, &one, &address, MPI_INT, &type);
    PMPI_Type_commit(&type);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(MPI_BOTTOM, 1, type, 0, MPI_COMM_WORLD, &request);
    MPI_Type_free(&type);  // with the operation pending
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check::that(value == 4711, "ibcast with MPI_BOTTOM gave {}", value);
}

// This predefined type has a gap between its parts and its end.
void predefined_with_gaps() {
    struct Pair {
        double value;
        int place;
    };
    const auto ranks = static_cast<std::size_t>(check::size_of(MPI_COMM_WORLD));
    const int rank = check::rank_of(MPI_COMM_WORLD);
    const Pair mine[2] = {{rank + 0.5, rank}, {rank + 0.25, -rank}};
    std::vector<Pair> all(2 * ranks, Pair{-1, -1});
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallgather(mine, 2, MPI_DOUBLE_INT, all.data(), 2, MPI_DOUBLE_INT, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    bool good = true;
    for (std::size_t r = 0; r < ranks; ++r) {
        good = good && all[2 * r].value == static_cast<double>(r) + 0.5 &&
               all[2 * r + 1].place == -static_cast<int>(r);
    }
    check::that(good, "iallgather of MPI_DOUBLE_INT");
}

// The device maps this memory. The barrier is tested here too.
void mapped_memory_and_barrier() {
    const auto ranks = static_cast<std::size_t>(check::size_of(MPI_COMM_WORLD));
    const int count = 40000;
    int* send = nullptr;
    int* recv = nullptr;
    const auto bytes = static_cast<MPI_Aint>(ranks * count * sizeof(int));
    MPI_Alloc_mem(bytes, MPI_INFO_NULL, &send);
    MPI_Alloc_mem(bytes, MPI_INFO_NULL, &recv);
    for (std::size_t i = 0; i < ranks * count; ++i)
        send[i] = check::rank_of(MPI_COMM_WORLD) * 1000 + static_cast<int>(i / count);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ialltoall(send, count, MPI_INT, recv, count, MPI_INT, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    bool good = true;
    for (std::size_t i = 0; i < ranks * count; ++i)
        good = good && recv[i] == static_cast<int>(i / count) * 1000 + check::rank_of(MPI_COMM_WORLD);
    check::that(good, "ialltoall in memory of MPI_Alloc_mem");
    MPI_Free_mem(send);
    MPI_Free_mem(recv);
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int rank = check::rank_of(MPI_COMM_WORLD);
    MPI_Comm reversed = MPI_COMM_NULL;
    MPI_Comm parity = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &parity);

    std::vector<check::Type> types = check::make_types();
    for (const check::Type& type : types) {
        all_operations({MPI_COMM_WORLD, "world", type, type, 3});
        all_operations({reversed, "reversed", types[0], type, 5});
        all_operations({parity, "parity", type, types[0], 1});
    }
    for (const int units : {0, 1, 700, 20000})
        all_operations({MPI_COMM_WORLD, "world", types[0], types[1], units});
    all_operations({reversed, "reversed", types[5], types[4], 3000});
    absolute_addresses();
    predefined_with_gaps();
    mapped_memory_and_barrier();

    check::free_types(types);
    MPI_Comm_free(&reversed);
    MPI_Comm_free(&parity);
    return check::finish();
}
