// The daemon dies with messages outstanding. Run with "return", messages at the device end with an error at
// both ends within 10 s, and later messages go through the host's MPI; with "fatal", the job ends
// (lost_daemon.sh checks how).
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

int class_of(int error) {
    int its_class = error;
    PMPI_Error_class(error, &its_class);
    return its_class;
}

// Sends around the ring. Returns whether all of it succeeded. If not, checks the errors of both calls.
bool exchange(int source, const char* when) {
    std::fill(in.begin(), in.end(), -1);
    MPI_Request requests[2];
    MPI_Irecv(in.data(), ints, MPI_INT, source, 1, MPI_COMM_WORLD, &requests[0]);
    PMPI_Barrier(MPI_COMM_WORLD);
    const int started = MPI_Isend(out.data(), ints, MPI_INT, next, 1, MPI_COMM_WORLD, &requests[1]);
    check::that(started == MPI_SUCCESS, "{}: a send could not be started: {}", when, started);
    const int received = MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    const int sent = MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    for (int error : {received, sent})
        check::that(error == MPI_SUCCESS || class_of(error) == MPI_ERR_OTHER, "{}: error {}", when, error);
    check::that(received != MPI_SUCCESS || is_right(), "{}: a message is wrong", when);
    return received == MPI_SUCCESS && sent == MPI_SUCCESS;
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
    check::that(exchange(previous, "before"), "a message failed while the daemon lived");

    // When the daemon dies, messages wait at the device for receives, and receives for messages.
    std::vector<int> never(ints, 7), taken_back(ints, 7);
    MPI_Request sent, cancelled;
    MPI_Isend(out.data(), ints, MPI_INT, next, 2, MPI_COMM_WORLD, &sent);
    MPI_Irecv(taken_back.data(), ints, MPI_INT, previous, 3, MPI_COMM_WORLD, &cancelled);
    PMPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) check::kill_daemon();
    PMPI_Barrier(MPI_COMM_WORLD);
    const auto start = std::chrono::steady_clock::now();
    const int received =
        MPI_Recv(never.data(), ints, MPI_INT, previous, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const int ended = MPI_Wait(&sent, MPI_STATUS_IGNORE);
    check::that(class_of(received) == MPI_ERR_OTHER && class_of(ended) == MPI_ERR_OTHER,
                "a message that was at the lost device: receive {}, send {}", received, ended);

    MPI_Cancel(&cancelled);
    MPI_Status status;
    int flag = 0;
    check::that(MPI_Wait(&cancelled, &status) == MPI_SUCCESS, "the wait for a cancelled receive");
    PMPI_Test_cancelled(&status, &flag);
    check::that(flag == 1 && taken_back == std::vector<int>(ints, 7), "a receive was not cancelled");

    for (int i = 0; i < 2; ++i) {
        check::that(exchange(previous, "after"), "a message failed when the loss was known");
        check::that(exchange(MPI_ANY_SOURCE, "after, any source"), "a message failed, any source");
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    check::that(took.count() < 10, "all of it took {:.1f} s", took.count());
    return check::finish();
}
