// A daemon stands still and then dies when one rank has its results of allreduces, and has new data in their
// buffers, while the other rank has none. The first rank gives the other one copies of the results, also
// where operands are in place. Errors are fatal. Two ranks with a daemon each (several_daemons.sh).
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "check.h"
#include "kill_daemon.h"

namespace {

constexpr int elements = 256, calls = 3;

struct Sum {
    Sum(int number, int rank) : which(number), send(elements), recv(elements, -1) {
        for (int i = 0; i < elements; ++i)
            send[static_cast<std::size_t>(i)] = value(rank, i);
        if (in_place()) recv = send;
    }
    int value(int rank, int i) const { return which * 1'000'003 + rank * 10'007 + i; }
    bool in_place() const { return which % 2 == 1; }
    void start() {
        MPI_Iallreduce(in_place() ? MPI_IN_PLACE : send.data(), recv.data(), elements, MPI_INT, MPI_SUM,
                       MPI_COMM_WORLD, &request);
    }
    void end() {
        check::that(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS, "a wait failed");
        for (int i = 0; i < elements; ++i)
            if (recv[static_cast<std::size_t>(i)] != value(0, i) + value(1, i))
                return check::that(false, "sum {}: element {} is wrong", which, i);
    }
    const int which;
    std::vector<int> send, recv;
    MPI_Request request = MPI_REQUEST_NULL;
};

}  // namespace

int main(int argc, char** argv) {
    // So short that a device sends its operands at once.
    setenv("OFFPATH_MIN_BYTES", "64", 1);
    MPI_Init(&argc, &argv);
    const int rank = check::rank_of(MPI_COMM_WORLD);
    const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(300)); };
    for (const bool lost : {false, true}) {
        std::vector<Sum> sums;
        for (int i = 0; i < calls; ++i)
            sums.emplace_back(10 * calls * (lost ? 1 : 0) + i, rank);
        const auto all = [&](auto what) { std::for_each(sums.begin(), sums.end(), what); };
        if (rank == 1 || !lost) all([](Sum& sum) { sum.start(); });
        if (lost) {
            pause();
            if (rank == 1) check::kill_daemon(SIGSTOP);
            PMPI_Barrier(MPI_COMM_WORLD);
            if (rank == 0) {
                all([](Sum& sum) { sum.start(); });
                all([](Sum& sum) { sum.end(); });
                for (Sum& sum : sums) {
                    std::fill(sum.send.begin(), sum.send.end(), -5);
                    std::fill(sum.recv.begin(), sum.recv.end(), -6);
                }
            }
            PMPI_Barrier(MPI_COMM_WORLD);
            if (rank == 1) check::kill_daemon();
        }
        if (rank == 1 || !lost) all([](Sum& sum) { sum.end(); });
        // The rank that is done answers the other one meanwhile.
        MPI_Request all_over;
        PMPI_Ibarrier(MPI_COMM_WORLD, &all_over);
        for (int over = 0; over == 0;)
            MPI_Test(&all_over, &over, MPI_STATUS_IGNORE);
    }
    return check::finish();
}
