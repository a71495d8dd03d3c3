// One of several daemons dies, errors are returned, and rank 0 sits in a collective of the host's MPI that it
// cannot leave before the last rank has ended one of the device. The last rank knows of the loss, so its
// collective waits for an answer of rank 0, which cannot give one. It must end all the same: with an
// error, if rank 0 does not answer in time.
// All later collectives work. Two or more ranks, with two or more daemons (several_daemons.sh); the last
// rank's daemon dies. The argument says what rank 0 has of the device's collective:
//   outstanding  it has started it
//   root         it is the root of a broadcast, and has completed it
//   held         it has started it. The last rank enters the host's collective too, while it holds the
//   device's
//                collective back, and the ranks between wait for it. Three or more ranks. With a large
//                OFFPATH_LOST_AFTER_S the last rank must give the collective up before it enters the host's.
#include <mpi.h>

#include <chrono>
#include <string_view>
#include <thread>
#include <vector>

#include "check.h"
#include "kill_daemon.h"

namespace {

constexpr int ints = 1024;  // may travel to the other device without its consent
int rank, ranks, last_rank;

struct Broadcast {
    std::vector<int> data = std::vector<int>(ints, -1);
    MPI_Request request = MPI_REQUEST_NULL;
    int value = 0;

    bool start(MPI_Comm comm, int number) {
        value = number;
        if (rank == 0) data.assign(ints, value);
        return MPI_Ibcast(data.data(), ints, MPI_INT, 0, comm, &request) == MPI_SUCCESS;
    }
    bool wait() {
        if (MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
        check::that(data == std::vector<int>(ints, value), "broadcast {} is wrong", value);
        return true;
    }
};

bool allreduce(MPI_Comm comm, MPI_Request* request) {
    static std::vector<int> mine(16 * ints, 1);
    static std::vector<std::vector<int>> results;
    results.emplace_back(16 * ints);
    return MPI_Iallreduce(mine.data(), results.back().data(), 16 * ints, MPI_INT, MPI_SUM, comm, request) ==
           MPI_SUCCESS;
}

// Sums that the last rank has started on a communicator of its own use. The others start theirs at the end.
MPI_Request early[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};

// The last rank ends its device, and learns of it.
void lose(MPI_Comm comm) {
    int token = 1;
    MPI_Recv(&token, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check::kill_daemon();
    for (MPI_Request& request : early) {
        allreduce(comm, &request);
        const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
        int done = 0;
        while (done == 0 && std::chrono::steady_clock::now() < end)
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        check::that(done == 0, "a collective has ended that the other ranks have not called");
    }
}

void small_sum(MPI_Comm comm) {
    int one = 1, all = 0;
    check::that(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS && all == ranks,
                "a small sum of the host's failed");
}

// The ranks between hear of the loss before they start the collective, so they hold it back. What the last
// rank has told them lies before its token. Each of the calls looks for such notices.
void hear_of_loss() {
    int token = 0;
    MPI_Recv(&token, 1, MPI_INT, last_rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
    for (int there = 0; std::chrono::steady_clock::now() < end; std::this_thread::yield())
        MPI_Iprobe(last_rank, 3, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
}

// The sum tells the last rank of the loss. It and the ranks between hold the broadcast back.
bool before_host_call(MPI_Comm of_device, MPI_Comm of_host, int number, MPI_Comm first_lost) {
    Broadcast broadcast;
    const bool loses = first_lost != MPI_COMM_NULL;
    if (loses && rank == last_rank) lose(first_lost);
    if (loses && rank != 0 && rank != last_rank) hear_of_loss();
    MPI_Request sum = MPI_REQUEST_NULL;
    const bool sum_started = allreduce(of_device, &sum);
    const bool started = broadcast.start(of_device, number);
    int token = 1;
    if (loses && rank == 0) MPI_Send(&token, 1, MPI_INT, last_rank, 1, MPI_COMM_WORLD);
    for (int between = 1; loses && rank == last_rank && between < last_rank; ++between)
        MPI_Send(&token, 1, MPI_INT, between, 2, MPI_COMM_WORLD);
    const bool enters = rank == 0 || rank == last_rank;
    if (enters) small_sum(of_host);
    const bool sum_works = sum_started && MPI_Wait(&sum, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    const bool works = started && broadcast.wait();
    if (!enters) small_sum(of_host);
    return sum_works && works;
}

// Returns whether the broadcast succeeded.
bool beside_collective(MPI_Comm of_device, MPI_Comm of_host, int number, MPI_Comm first_lost) {
    Broadcast broadcast;
    const bool loses = first_lost != MPI_COMM_NULL;
    if (loses && rank == last_rank) lose(first_lost);
    MPI_Request sum = MPI_REQUEST_NULL;
    const bool sum_started = allreduce(of_device, &sum);
    const bool started = broadcast.start(of_device, number);
    int token = 1;
    if (loses && rank == 0) MPI_Send(&token, 1, MPI_INT, last_rank, 1, MPI_COMM_WORLD);
    if (rank == 0) small_sum(of_host);
    const bool sum_works = sum_started && MPI_Wait(&sum, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    const bool works = started && broadcast.wait();
    if (rank != 0) small_sum(of_host);
    return sum_works && works;
}

bool after_broadcast(MPI_Comm of_device, MPI_Comm of_host, int number, MPI_Comm first_lost) {
    Broadcast broadcast;
    const bool loses = first_lost != MPI_COMM_NULL;
    if (loses && rank == last_rank) lose(first_lost);
    const bool started = broadcast.start(of_device, number);
    const bool works = started && broadcast.wait();  // the root needs no other rank
    int token = 1;
    if (loses && rank == 0) MPI_Send(&token, 1, MPI_INT, last_rank, 1, MPI_COMM_WORLD);
    small_sum(of_host);
    return works;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    rank = check::rank_of(MPI_COMM_WORLD);
    ranks = check::size_of(MPI_COMM_WORLD);
    last_rank = ranks - 1;
    const std::string_view has = argc > 1 ? argv[1] : "outstanding";
    const auto round = has == "root" ? after_broadcast : has == "held" ? before_host_call : beside_collective;
    MPI_Comm of_device, of_host, first_lost;
    for (MPI_Comm* comm : {&of_device, &of_host, &first_lost})
        MPI_Comm_dup(MPI_COMM_WORLD, comm);
    const auto use = [&](int number, MPI_Comm lost) { return round(of_device, of_host, number, lost); };
    check::that(use(1, MPI_COMM_NULL), "failed while all daemons lived");
    PMPI_Barrier(MPI_COMM_WORLD);
    const bool first = use(2, first_lost);
    if (has != "outstanding" && rank == last_rank)
        check::that(!first, "a collective has succeeded that rank 0 could not run again");
    int last_failed = 2;
    for (int number = 3; number < 12; ++number)
        if (!use(number, MPI_COMM_NULL)) last_failed = number;
    fmt::print("rank {}: number {} failed last\n", rank, last_failed);
    check::that(last_failed <= 4, "number {} has failed", last_failed);
    for (MPI_Request& request : early) {
        if (rank != last_rank) allreduce(first_lost, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (MPI_Comm* comm : {&of_device, &of_host, &first_lost})
        MPI_Comm_free(comm);
    return check::finish();
}
