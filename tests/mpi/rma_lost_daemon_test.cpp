// The only daemon dies while windows are in use: one rank puts, and the others wait for a lock that it holds.
// Where the windows cannot outlive it, every rank gets an error with "return", and the program
// continues; with "fatal" the job ends (lost_daemon.sh checks how). With THREADS=1 it has several threads, so
// they cannot. With OUTLIVES=1 nothing fails: the others get their locks when the first rank has given its
// own back.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>

#include "check.h"
#include "kill_daemon.h"

int main(int argc, char** argv) {
    int provided = MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, std::getenv("THREADS") != nullptr ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                    &provided);
    const bool errors_return = argc > 1 && std::string_view(argv[1]) == "return";
    const int rank = check::rank_of(MPI_COMM_WORLD);
    const int ranks = check::size_of(MPI_COMM_WORLD);
    const int count = 1 << 20;
    std::vector<int> memory(static_cast<std::size_t>(count)), data(memory.size(), rank);
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_create(memory.data(), static_cast<MPI_Aint>(count) * 4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    if (errors_return) {
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
        PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    }
    const bool outlives = std::getenv("OUTLIVES") != nullptr;
    // Rank 0 holds a lock for which the others wait when the daemon dies.
    if (rank == 0) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    PMPI_Barrier(MPI_COMM_WORLD);
    const auto start = std::chrono::steady_clock::now();
    int result = MPI_SUCCESS;
    if (rank == 0) {
        std::fill(data.begin(), data.end(), 5);
        result = MPI_Put(data.data(), count, MPI_INT, 0, 0, count, MPI_INT, win);
        check::kill_daemon();
        for (int i = 0; i < (outlives ? 20 : 1000) && result == MPI_SUCCESS; ++i) {
            result = MPI_Put(data.data(), count, MPI_INT, 0, 0, count, MPI_INT, win);
            if (result == MPI_SUCCESS) result = MPI_Win_flush(0, win);
        }
        if (outlives) result = MPI_Win_unlock(0, win);
    } else {
        result = MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        if (outlives) {
            MPI_Get(data.data(), count, MPI_INT, 0, 0, count, MPI_INT, win);
            result = MPI_Win_unlock(0, win);
            check::that(data == std::vector<int>(data.size(), 5),
                        "a lock was given to two ranks, or a put is lost");
        }
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    check::that((result == MPI_SUCCESS) == outlives, "the last call gave {}", result);
    check::that(took.count() < 40, "it took {:.1f} s", took.count());

    // The window can be freed, and the host's MPI still works.
    if (rank == 0 && !outlives) check::that(MPI_Win_unlock(0, win) != MPI_SUCCESS, "unlock without a daemon");
    check::that((MPI_Win_free(&win) == MPI_SUCCESS) == outlives, "MPI_Win_free did not say what happened");
    int sum = 1;
    PMPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check::that(sum == ranks, "the host's MPI gave {}", sum);
    return check::finish();
}
