// The only daemon dies with messages outstanding. They go through the host's MPI, as later ones do, and none
// ends with an error, whether errors are returned ("return") or end the job ("fatal").
#include <algorithm>
#include <chrono>
#include <string_view>

#include "check.h"
#include "kill_daemon.h"

namespace {

constexpr int ints = 1 << 20;
int rank, size, next, previous;
std::vector<int> out, in;

bool is_right() {
    return std::all_of(in.begin(), in.end(), [](int i) { return i == previous; });
}

// Sends around the ring.
void exchange(int source, const char* when) {
    std::fill(in.begin(), in.end(), -1);
    MPI_Request requests[2];
    MPI_Irecv(in.data(), ints, MPI_INT, source, 1, MPI_COMM_WORLD, &requests[0]);
    PMPI_Barrier(MPI_COMM_WORLD);
    const int started = MPI_Isend(out.data(), ints, MPI_INT, next, 1, MPI_COMM_WORLD, &requests[1]);
    check::that(started == MPI_SUCCESS, "{}: a send could not be started: {}", when, started);
    const int received = MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    const int sent = MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    check::that(received == MPI_SUCCESS && sent == MPI_SUCCESS, "{}: receive {}, send {}", when, received,
                sent);
    check::that(is_right(), "{}: a message is wrong", when);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    if (argc > 1 && std::string_view(argv[1]) == "return")
        PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    rank = check::rank_of(MPI_COMM_WORLD);
    size = check::size_of(MPI_COMM_WORLD);
    next = (rank + 1) % size;
    previous = (rank + size - 1) % size;
    out.assign(ints, rank);
    in.resize(ints);
    exchange(previous, "before");

    // When the daemon dies, messages wait at the device for receives, and receives for messages.
    std::vector<int> waited(ints, 7), taken_back(ints, 7);
    MPI_Request sent, cancelled;
    MPI_Isend(out.data(), ints, MPI_INT, next, 2, MPI_COMM_WORLD, &sent);
    MPI_Irecv(taken_back.data(), ints, MPI_INT, previous, 3, MPI_COMM_WORLD, &cancelled);
    PMPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) check::kill_daemon();
    PMPI_Barrier(MPI_COMM_WORLD);
    const auto start = std::chrono::steady_clock::now();
    const int received =
        MPI_Recv(waited.data(), ints, MPI_INT, previous, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const int ended = MPI_Wait(&sent, MPI_STATUS_IGNORE);
    check::that(received == MPI_SUCCESS && ended == MPI_SUCCESS && waited == std::vector<int>(ints, previous),
                "a message that was at the lost device: receive {}, send {}", received, ended);

    MPI_Cancel(&cancelled);
    MPI_Status status;
    int flag = 0;
    check::that(MPI_Wait(&cancelled, &status) == MPI_SUCCESS, "the wait for a cancelled receive");
    PMPI_Test_cancelled(&status, &flag);
    check::that(flag == 1 && taken_back == std::vector<int>(ints, 7), "a receive was not cancelled");

    for (int i = 0; i < 2; ++i) {
        exchange(previous, "after");
        exchange(MPI_ANY_SOURCE, "after, any source");
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    check::that(took.count() < 40, "all of it took {:.1f} s", took.count());
    return check::finish();
}
