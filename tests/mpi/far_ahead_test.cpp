// Collectives that are only started, where no rank may wait for another one: a rank that is hundreds of calls
// ahead of one that waits for its message, and communicators that are freed meanwhile.
#include <mpi.h>

#include <vector>

#include "check.h"

namespace {

constexpr int ints = 2048, calls = 200;
int rank;

struct Broadcasts {
    explicit Broadcasts(int count)
        : data(static_cast<std::size_t>(count), std::vector<int>(ints, rank == 0 ? 7 : -1)),
          requests(static_cast<std::size_t>(count), MPI_REQUEST_NULL) {}
    void start(MPI_Comm comm) {
        for (std::size_t i = 0; i < data.size(); ++i)
            MPI_Ibcast(data[i].data(), ints, MPI_INT, 0, comm, &requests[i]);
    }
    void wait() {
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
        for (const auto& each : data)
            check::that(each == std::vector<int>(ints, 7), "a broadcast is wrong");
    }
    std::vector<std::vector<int>> data;
    std::vector<MPI_Request> requests;
};

// Rank 0 tells the others to begin when it has started all its own operations.
void meet_late(int ranks) {
    int token = 5;
    if (rank != 0) {
        MPI_Recv(&token, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    for (int other = 1; other < ranks; ++other)
        MPI_Send(&token, 1, MPI_INT, other, 3, MPI_COMM_WORLD);
}

void far_ahead(int ranks, MPI_Comm comm) {
    Broadcasts broadcasts(calls);
    if (rank != 0) meet_late(ranks);
    broadcasts.start(comm);
    if (rank == 0) meet_late(ranks);
    broadcasts.wait();
}

// The message comes after a different number of calls each time.
void freed(int ranks) {
    for (int count = 28; count < 36; ++count) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        Broadcasts broadcasts(count);
        if (rank != 0) meet_late(ranks);
        broadcasts.start(comm);
        MPI_Comm_free(&comm);
        check::that(comm == MPI_COMM_NULL, "the communicator is not null");
        if (rank == 0) meet_late(ranks);
        broadcasts.wait();
    }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    rank = check::rank_of(MPI_COMM_WORLD);
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    far_ahead(ranks, MPI_COMM_WORLD);
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    far_ahead(ranks, other);
    MPI_Comm_disconnect(&other);
    freed(ranks);
    return check::finish();
}
