// MPI_THREAD_MULTIPLE: several threads, each with its own communicator, all post, wait, test, and make and
// free communicators at once.
#include <memory>
#include <thread>

#include "check.h"

namespace {

constexpr int threads = 4;
constexpr int rounds = 30;

void one_round(MPI_Comm comm, int seed) {
    const auto ranks = static_cast<std::size_t>(check::size_of(comm));
    const int rank = check::rank_of(comm);
    const int count = 100 + seed * 37 % 5000;
    const auto n = static_cast<std::size_t>(count);
    std::vector<int> send(ranks * n), recv(ranks * n, -1), gathered(ranks * n, -1),
        cast(n, rank == 0 ? seed : -1);
    for (std::size_t to = 0; to < ranks; ++to) {
        for (std::size_t i = 0; i < n; ++i)
            send[to * n + i] = seed + rank * 1000 + static_cast<int>(to);
    }
    MPI_Request requests[3];
    MPI_Ialltoall(send.data(), count, MPI_INT, recv.data(), count, MPI_INT, comm, &requests[0]);
    MPI_Iallgather(send.data(), count, MPI_INT, gathered.data(), count, MPI_INT, comm, &requests[1]);
    MPI_Ibcast(cast.data(), count, MPI_INT, 0, comm, &requests[2]);
    if (seed % 3 == 0) {
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    } else if (seed % 3 == 1) {
        for (int flag = 0; flag == 0; std::this_thread::yield())
            MPI_Testall(3, requests, &flag, MPI_STATUSES_IGNORE);
    } else {
        int index = 0;
        do {
            MPI_Waitany(3, requests, &index, MPI_STATUS_IGNORE);
        } while (index != MPI_UNDEFINED);
    }
    bool good = cast[0] == seed && cast[n - 1] == seed;
    for (std::size_t from = 0; from < ranks; ++from) {
        good = good && recv[from * n] == seed + static_cast<int>(from) * 1000 + rank;
        good = good && recv[from * n + n - 1] == recv[from * n];
        good = good && gathered[from * n + n - 1] == seed + static_cast<int>(from) * 1000;
    }
    check::that(good, "data of a thread, round {}", seed);
}

void work(MPI_Comm comm, int thread) {
    for (int round = 0; round < rounds; ++round) {
        one_round(comm, thread * 1000 + round);
        if (round % 10 == 5) {
            MPI_Comm copy = MPI_COMM_NULL;
            MPI_Comm_dup(comm, &copy);
            one_round(copy, thread * 1000 + 500 + round);
            MPI_Comm_free(&copy);
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided < MPI_THREAD_MULTIPLE) {
        std::puts("skipped: this MPI has no MPI_THREAD_MULTIPLE");
        MPI_Finalize();
        return 77;
    }
    std::vector<MPI_Comm> comms(threads);
    for (MPI_Comm& comm : comms)
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    {
        std::vector<std::jthread> workers;
        for (int i = 0; i < threads; ++i)
            workers.emplace_back(work, comms[static_cast<std::size_t>(i)], i);
    }
    for (MPI_Comm& comm : comms)
        MPI_Comm_free(&comm);
    return check::finish();
}
