// MPI_Ialltoallv, in which each pair of ranks chooses its path. The switch-over is inside the range of sizes,
// so one call has pairs on the device, pairs on the host, empty pairs, and ranks without any large pair.
// Compared with PMPI_.
#include <algorithm>
#include <functional>

#include "check.h"
#include "types.h"

namespace {

struct Counts {
    std::vector<int> counts, displs;
    int elements = 0;  // that the buffer holds
};

// Returns how many units rank `from` sends to rank `to`. `shape` selects the mixture.
int units(int shape, int from, int to) {
    switch (shape) {
        case 0:
            return 1 + (from * 5 + to * 3) % 7;  // all small
        case 1:
            return 2000 + from + to;  // all large
        case 2:
            return (from + to) % 2 == 0 ? 3 : 1500;  // mixed
        case 3:
            return from == 0 || to == 0 ? 2500 : 0;  // one rank talks
        case 4:
            return (from * to) % 3 == 0 ? 0 : 40 * (from + to);
        default:
            return 0;  // nothing at all
    }
}

// Blocks in reversed places with gaps, so that displacements are in no order.
Counts lay_out(const check::Type& type, int ranks, const std::function<int(int)>& units_of) {
    Counts result;
    result.displs.resize(static_cast<std::size_t>(ranks));
    for (int r = 0; r < ranks; ++r)
        result.counts.push_back(units_of(r) * 6 / type.ints_an_element);
    for (int r = ranks - 1; r >= 0; --r) {
        result.displs[static_cast<std::size_t>(r)] = result.elements;
        result.elements += result.counts[static_cast<std::size_t>(r)] + 1;
    }
    return result;
}

// The same blocks, with the pointer in the middle of the buffer. Half of the displacements are negative.
int move_to_middle(Counts& counts) {
    const int middle = counts.elements / 2;
    for (int& displ : counts.displs)
        displ -= middle;
    return middle;
}

void run(MPI_Comm comm, const check::Type& send_type, const check::Type& recv_type, int shape,
         bool in_place) {
    const int ranks = check::size_of(comm);
    const int rank = check::rank_of(comm);
    const auto pair = [&](int from, int to) {
        return in_place ? units(shape, std::min(from, to), std::max(from, to)) : units(shape, from, to);
    };
    Counts sent = lay_out(send_type, ranks, [&](int r) { return pair(rank, r); });
    Counts received = lay_out(recv_type, ranks, [&](int r) { return pair(r, rank); });
    const std::vector<int> send =
        check::pattern(static_cast<std::size_t>(sent.elements * send_type.span) + 1, shape);
    std::vector<int> expected =
        check::pattern(static_cast<std::size_t>(received.elements * recv_type.span) + 1, shape + 1);
    std::vector<int> got = expected;
    const int send_middle = move_to_middle(sent) * send_type.span;
    const int recv_middle = move_to_middle(received) * recv_type.span;
    const void* from = in_place ? MPI_IN_PLACE : static_cast<const void*>(send.data() + send_middle);

    MPI_Request request = MPI_REQUEST_NULL;
    PMPI_Ialltoallv(from, sent.counts.data(), sent.displs.data(), send_type.type,
                    expected.data() + recv_middle, received.counts.data(), received.displs.data(),
                    recv_type.type, comm, &request);
    PMPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Ialltoallv(from, sent.counts.data(), sent.displs.data(), send_type.type, got.data() + recv_middle,
                   received.counts.data(), received.displs.data(), recv_type.type, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check::that(got == expected, "ialltoallv shape {}{} of {} ranks, {} to {}", shape,
                in_place ? " in place" : "", ranks, send_type.name, recv_type.name);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int rank = check::rank_of(MPI_COMM_WORLD);
    MPI_Comm reversed = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank / 3, -rank, &reversed);
    std::vector<check::Type> types = check::make_types();
    for (int shape = 0; shape < 6; ++shape) {
        for (const check::Type& type : types) {
            run(MPI_COMM_WORLD, type, types[0], shape, false);
            run(MPI_COMM_WORLD, types[0], type, shape, false);
            run(reversed, type, type, shape, true);
        }
        run(reversed, types[5], types[6], shape, false);
    }
    check::free_types(types);
    MPI_Comm_free(&reversed);
    return check::finish();
}
