// MPI_Finalize with operations that were never waited for, and with communicators that were never freed.
#include "check.h"

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const auto ranks = static_cast<std::size_t>(check::size_of(MPI_COMM_WORLD));
    const int count = 50000;
    static std::vector<int> send, recv;  // outlive MPI
    send = check::pattern(ranks * count, 1);
    recv.resize(ranks * count);
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Request first = MPI_REQUEST_NULL;
    MPI_Request second = MPI_REQUEST_NULL;
    static std::vector<int> all;
    all.resize(ranks * count);
    MPI_Ialltoall(send.data(), count, MPI_INT, recv.data(), count, MPI_INT, MPI_COMM_WORLD, &first);
    MPI_Iallgather(send.data(), count, MPI_INT, all.data(), count, MPI_INT, copy, &second);
    const int mine = check::rank_of(MPI_COMM_WORLD);
    std::vector<int> expected(ranks * count);
    PMPI_Alltoall(send.data(), count, MPI_INT, expected.data(), count, MPI_INT, MPI_COMM_WORLD);
    MPI_Request_free(&second);
    MPI_Finalize();
    // Operations that all ranks have posted are done when MPI has ended.
    if (recv != expected) {
        std::fprintf(stderr, "rank %d: FAILED data after MPI_Finalize\n", mine);
        return 1;
    }
    return 0;
}
