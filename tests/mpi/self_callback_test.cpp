// Callbacks of MPI_COMM_SELF, which MPI_Finalize calls before anything of MPI ends. They communicate, alone
// and with all ranks, and use requests, persistent operations and windows that were made before.
#include <numeric>

#include "check.h"

namespace {

constexpr int count = 50000;
using Ints = std::vector<int>;

int rank = 0, ranks = 0;
Ints from_left(count), everybodys, persistent_in(count), window_memory(count);
MPI_Request pending[2], persistent[2];
MPI_Win window = MPI_WIN_NULL;

// What a rank sends in the call with this number.
Ints sent(int by, int call) {
    Ints values(count);
    std::iota(values.begin(), values.end(), 1000000 * by + 10000000 * call);
    return values;
}
int left() {
    return (rank + ranks - 1) % ranks;
}
int right() {
    return (rank + 1) % ranks;
}

// The first rank is in MPI_Finalize, and the others are not: they receive this before they call it.
int last_words(MPI_Comm, int, void*, void*) {
    const Ints words = sent(0, 1);
    for (int peer = 1; peer < ranks; ++peer)
        MPI_Send(words.data(), count, MPI_INT, peer, 1, MPI_COMM_WORLD);
    return MPI_SUCCESS;
}

int all_together(MPI_Comm, int, void*, void*) {
    int finalized = 1;
    MPI_Finalized(&finalized);
    check::that(finalized == 0, "MPI has ended before the callback");
    MPI_Waitall(2, pending, MPI_STATUSES_IGNORE);
    check::that(from_left == sent(left(), 2), "a request from before");

    MPI_Startall(2, persistent);
    MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE);
    check::that(persistent_in == sent(left(), 3), "a persistent operation from before");
    for (MPI_Request& each : persistent)
        MPI_Request_free(&each);

    const Ints mine = sent(rank, 4);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallgather(mine.data(), count, MPI_INT, everybodys.data(), count, MPI_INT, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int peer = 0; peer < ranks; ++peer)
        check::that(std::equal(everybodys.begin() + static_cast<std::ptrdiff_t>(peer) * count,
                               everybodys.begin() + static_cast<std::ptrdiff_t>(peer + 1) * count,
                               sent(peer, 4).begin()),
                    "a collective, the part of rank {}", peer);

    const Ints put = sent(rank, 5);
    MPI_Win_fence(0, window);
    MPI_Put(put.data(), count, MPI_INT, right(), 0, count, MPI_INT, window);
    MPI_Win_fence(0, window);
    check::that(window_memory == sent(left(), 5), "a window from before");
    MPI_Win_free(&window);
    return MPI_SUCCESS;
}

void call_in_the_end(MPI_Comm_delete_attr_function* function) {
    int key = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, function, &key, nullptr);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    rank = check::rank_of(MPI_COMM_WORLD);
    ranks = check::size_of(MPI_COMM_WORLD);
    everybodys.resize(static_cast<std::size_t>(ranks) * count);
    // The last one that is set is called first.
    call_in_the_end(all_together);
    if (rank == 0) call_in_the_end(last_words);

    const Ints early = sent(rank, 2), again = sent(rank, 3);
    MPI_Irecv(from_left.data(), count, MPI_INT, left(), 2, MPI_COMM_WORLD, &pending[0]);
    MPI_Isend(early.data(), count, MPI_INT, right(), 2, MPI_COMM_WORLD, &pending[1]);
    MPI_Recv_init(persistent_in.data(), count, MPI_INT, left(), 3, MPI_COMM_WORLD, &persistent[0]);
    MPI_Send_init(again.data(), count, MPI_INT, right(), 3, MPI_COMM_WORLD, &persistent[1]);
    MPI_Win_create(window_memory.data(), count * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                   &window);
    if (rank != 0) {
        Ints words(count);
        MPI_Recv(words.data(), count, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check::that(words == sent(0, 1), "the last words of rank 0");
    }
    MPI_Finalize();
    return check::failures.load() == 0 ? 0 : 1;
}
