// A daemon stands still and then dies when one rank has its results of collectives, and has new data in their
// buffers, while the other rank has none. The first rank gives the other one copies of the results, also
// where operands are in place. Errors are fatal. Two ranks with a daemon each (several_daemons.sh).
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "check.h"
#include "kill_daemon.h"

namespace {

constexpr int elements = 256;
enum class What { sum, sum_in_place, broadcast, gathered };

int value(What what, bool lost, int rank, int i) {
    return (static_cast<int>(what) + (lost ? 10 : 0)) * 1'000'003 + rank * 10'007 + i;
}

struct Collective {
    Collective(What kind, bool is_lost, int own_rank)
        : what(kind), lost(is_lost), rank(own_rank), send(elements), recv(2 * elements, -1) {
        for (int i = 0; i < elements; ++i)
            send[static_cast<std::size_t>(i)] = value(what, lost, rank, i);
        if (what == What::sum_in_place || (what == What::broadcast && rank == 0))
            std::copy(send.begin(), send.end(), recv.begin());
    }
    void start() {
        switch (what) {
            case What::sum:
            case What::sum_in_place:
                MPI_Iallreduce(what == What::sum ? send.data() : MPI_IN_PLACE, recv.data(), elements, MPI_INT,
                               MPI_SUM, MPI_COMM_WORLD, &request);
                return;
            case What::broadcast:
                MPI_Ibcast(recv.data(), elements, MPI_INT, 0, MPI_COMM_WORLD, &request);
                return;
            case What::gathered:
                MPI_Iallgather(send.data(), elements, MPI_INT, recv.data(), elements, MPI_INT, MPI_COMM_WORLD,
                               &request);
        }
    }
    int wanted(int i) const {
        if (what == What::broadcast) return i < elements ? value(what, lost, 0, i) : -1;
        if (what == What::gathered) return value(what, lost, i / elements, i % elements);
        return i < elements ? value(what, lost, 0, i) + value(what, lost, 1, i) : -1;
    }
    void end() {
        check::that(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS, "a wait failed");
        for (int i = 0; i < 2 * elements; ++i)
            if (recv[static_cast<std::size_t>(i)] != wanted(i))
                return check::that(false, "collective {}: element {} is wrong", static_cast<int>(what), i);
    }
    const What what;
    const bool lost;
    const int rank;
    std::vector<int> send, recv;
    MPI_Request request = MPI_REQUEST_NULL;
};

// Messages between two devices keep their order, so what they sent before has arrived afterwards.
void exchange(MPI_Comm comm) {
    std::vector<int> mine(elements, 1), sum(elements);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallreduce(mine.data(), sum.data(), elements, MPI_INT, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check::that(sum.back() == 2, "a sum of {}", sum.back());
}

}  // namespace

int main(int argc, char** argv) {
    // So short that a device sends its data at once.
    setenv("OFFPATH_MIN_BYTES", "64", 1);
    MPI_Init(&argc, &argv);
    const int rank = check::rank_of(MPI_COMM_WORLD);
    MPI_Comm another = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &another);
    for (const bool lost : {false, true}) {
        std::vector<Collective> every;
        for (const What what : {What::sum, What::broadcast, What::sum_in_place, What::gathered})
            every.emplace_back(what, lost, rank);
        const auto all = [&](auto action) { std::for_each(every.begin(), every.end(), action); };
        if (rank == 1 || !lost) all([](Collective& one) { one.start(); });
        // What rank 1's device sent is there then. Before a loss, rank 0 has not started these collectives
        // yet.
        exchange(another);
        if (lost) {
            if (rank == 1) check::kill_daemon(SIGSTOP);
            PMPI_Barrier(MPI_COMM_WORLD);
            if (rank == 0) {
                all([](Collective& one) { one.start(); });
                all([](Collective& one) { one.end(); });
                for (Collective& one : every) {
                    std::fill(one.send.begin(), one.send.end(), -5);
                    std::fill(one.recv.begin(), one.recv.end(), -6);
                }
            }
            PMPI_Barrier(MPI_COMM_WORLD);
            if (rank == 1) check::kill_daemon();
        }
        if (rank == 1 || !lost) all([](Collective& one) { one.end(); });
        // The rank that is done answers the other one meanwhile.
        MPI_Request all_over;
        PMPI_Ibarrier(MPI_COMM_WORLD, &all_over);
        for (int over = 0; over == 0;)
            MPI_Test(&all_over, &over, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&another);
    return check::finish();
}
