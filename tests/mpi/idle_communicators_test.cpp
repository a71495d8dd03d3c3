// The device makes a team for a communicator at the first call that goes there. Communicators whose messages
// and collectives all stay on the host cost it nothing. run.sh compares the number of teams in the daemon's
// log.
#include <mpi.h>

#include <vector>

#include "check.h"

namespace {

constexpr int communicators = 100;
constexpr int small = 4, large = 2000;  // ints, on either side of the switch-over

// Calls that stay on the host.
void use_on_host(MPI_Comm comm) {
    const int rank = check::rank_of(comm);
    const int size = check::size_of(comm);
    int sum = 0, from_left = -1;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    check::that(sum == size * (size - 1) / 2, "a sum is {}", sum);
    const int left = (rank + size - 1) % size;
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &from_left, 1, MPI_INT, left, 0, comm,
                 MPI_STATUS_IGNORE);
    check::that(from_left == left, "a message is {}", from_left);
    MPI_Barrier(comm);
}

void broadcast(MPI_Comm comm, int ints) {
    const int mine = check::rank_of(comm) == 0 ? 7 : -1;
    std::vector<int> data(static_cast<std::size_t>(ints), mine);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(data.data(), ints, MPI_INT, 0, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check::that(data == std::vector<int>(data.size(), 7), "a broadcast of {} ints is wrong", ints);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    std::vector<MPI_Comm> comms(communicators);
    for (MPI_Comm& comm : comms) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        use_on_host(comm);
        broadcast(comm, small);
    }
    broadcast(comms[communicators / 2], large);
    broadcast(comms[communicators / 2], large);
    for (MPI_Comm& comm : comms)
        MPI_Comm_free(&comm);
    return check::finish();
}
