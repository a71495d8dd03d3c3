// A daemon dies when one rank has its result of collectives, and has new data in their buffers, while the
// others wait for a rank that has not started them. No rank forwards data in these collectives, so the others
// end with right results without the rank that is done. Errors are fatal. Three ranks (several_daemons.sh):
// all exchange data with the last one only. The argument says whose daemon dies: first or last.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <thread>
#include <vector>

#include "check.h"
#include "kill_daemon.h"

namespace {

constexpr int block = 30'000;  // ints
constexpr int last = 2, done_early = 1;
int rank;

int value(int which, int from, int to, int i) {
    return which * 1'000'003 + from * 100'003 + to * 10'007 + i;
}

struct Collective {
    explicit Collective(int number) : which(number), send(3 * block), recv(3 * block, -1) {
        for (int to = 0; to < 3; ++to)
            for (int i = 0; i < block; ++i)
                send[static_cast<std::size_t>(to * block + i)] = value(which, rank, to, i);
    }
    void verify(int from, int to, const char* name) const {
        for (int i = 0; i < block; ++i)
            if (recv[static_cast<std::size_t>(from * block + i)] != value(which, from, to, i))
                return check::that(false, "{}: {} of the block of rank {} is wrong", name, i, from);
    }
    const int which;
    std::vector<int> send, recv;
    MPI_Request request = MPI_REQUEST_NULL;
};

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    rank = check::rank_of(MPI_COMM_WORLD);
    const bool first_dies = argc > 1 && std::string_view(argv[1]) == "first";
    const int victim = first_dies ? 0 : last;
    MPI_Comm graph;
    std::vector<int> around = rank == last ? std::vector<int>{0, 1} : std::vector<int>{last};
    const int degree = static_cast<int>(around.size());
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, degree, around.data(), MPI_UNWEIGHTED, degree,
                                   around.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    for (int round = 0; round < 2; ++round) {
        const bool lost = round == 1;
        Collective all(10 * round), neighbours(10 * round + 1), gathered(10 * round + 2);
        const int places[] = {0, block, 2 * block};
        int counts[3];
        for (int peer = 0; peer < 3; ++peer)
            counts[peer] = peer != rank && (peer == last || rank == last) ? block : 0;
        const int from_each[] = {block, block, block};
        PMPI_Barrier(MPI_COMM_WORLD);
        const auto start = [&] {
            MPI_Ialltoallv(all.send.data(), counts, places, MPI_INT, all.recv.data(), counts, places, MPI_INT,
                           MPI_COMM_WORLD, &all.request);
            MPI_Ineighbor_alltoall(neighbours.send.data(), block, MPI_INT, neighbours.recv.data(), block,
                                   MPI_INT, graph, &neighbours.request);
            MPI_Igatherv(gathered.send.data(), block, MPI_INT, gathered.recv.data(), from_each, places,
                         MPI_INT, last, MPI_COMM_WORLD, &gathered.request);
        };
        const auto end = [&] {
            for (Collective* one : {&all, &neighbours, &gathered})
                check::that(MPI_Wait(&one->request, MPI_STATUS_IGNORE) == MPI_SUCCESS, "a wait failed");
            if (rank != last) all.verify(last, rank, "MPI_Ialltoallv");
            for (int from = 0; from < 2 && rank == last; ++from) {
                all.verify(from, last, "MPI_Ialltoallv");
                gathered.verify(from, 0, "MPI_Igatherv");
            }
            // The first block is for the only neighbour of the other ranks. The last one has two.
            for (int from = 0; from < degree; ++from)
                for (int i = 0; i < block; ++i)
                    check::that(
                        neighbours.recv[static_cast<std::size_t>(from * block + i)] ==
                            value(neighbours.which, rank == last ? from : last, rank == last ? 0 : rank, i),
                        "MPI_Ineighbor_alltoall is wrong");
        };
        if (!lost || rank != 0) start();
        if (lost && rank == done_early) {
            end();
            for (Collective* one : {&all, &neighbours, &gathered})
                std::fill(one->send.begin(), one->send.end(), -5);
        }
        if (lost) {
            PMPI_Barrier(MPI_COMM_WORLD);
            // Daemons that have never answered each other's questions are not given up.
            std::this_thread::sleep_for(std::chrono::milliseconds(300));
            if (rank == victim) check::kill_daemon();
            PMPI_Barrier(MPI_COMM_WORLD);
            if (rank == 0) start();
        }
        if (!lost || rank != done_early) end();
        // The rank that is done answers the others meanwhile.
        MPI_Request all_over;
        PMPI_Ibarrier(MPI_COMM_WORLD, &all_over);
        for (int over = 0; over == 0;)
            MPI_Test(&all_over, &over, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&graph);
    return check::finish();
}
