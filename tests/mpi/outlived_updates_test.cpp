// The device of a third rank dies while a long update is under way between two others, whose devices live.
// The update happens exactly once: what the target's device has applied when it notices the loss stays, and
// the host's MPI adds the rest. Three ranks with a daemon each (several_daemons.sh).
// outlived_updates_test [NUMBERS]: of each update.
#include <mpi.h>

#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "check.h"
#include "kill_daemon.h"

namespace {

// An update is sent in pieces of 128 KiB. This many take longer than it takes to notice the loss.
constexpr int updates = 8;
constexpr int victim = 2;

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int rank = check::rank_of(MPI_COMM_WORLD);
    const int longs = argc > 1 ? std::atoi(argv[1]) : 1 << 20;
    {
        // Every other number of the target is reached, by a type with gaps.
        const auto count = static_cast<std::size_t>(longs);
        std::vector<std::int64_t> memory(2 * count, 5), ones(count);
        std::iota(ones.begin(), ones.end(), 1);
        MPI_Win win = MPI_WIN_NULL;
        MPI_Win_create(memory.data(), MPI_Aint{2} * longs * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        MPI_Datatype spread = MPI_DATATYPE_NULL;
        MPI_Type_vector(longs, 1, 2, MPI_INT64_T, &spread);
        MPI_Type_commit(&spread);
        MPI_Win_lock_all(0, win);
        // Once in full, so that everything has been set up.
        if (rank == 1) {
            MPI_Accumulate(ones.data(), longs, MPI_INT64_T, 0, 0, 1, spread, MPI_SUM, win);
            MPI_Win_flush(0, win);
        }
        PMPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1)
            for (int i = 0; i < updates; ++i)
                MPI_Accumulate(ones.data(), longs, MPI_INT64_T, 0, 0, 1, spread, MPI_SUM, win);
        if (rank == 1) PMPI_Send(nullptr, 0, MPI_BYTE, victim, 0, MPI_COMM_WORLD);
        if (rank == victim) {
            PMPI_Recv(nullptr, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check::kill_daemon();
        }
        // Errors are fatal here, as by default.
        if (rank == 1) MPI_Win_flush(0, win);
        MPI_Win_unlock_all(win);
        PMPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
        for (int i = 0; rank == 0 && i < longs; ++i) {
            const auto at = static_cast<std::size_t>(i) * 2;
            const std::int64_t wanted = 5 + std::int64_t{1 + updates} * (i + 1);
            check::that(memory[at] == wanted && memory[at + 1] == 5, "number {} is {}, not {}", i, memory[at],
                        wanted);
        }
        MPI_Win_unlock(rank, win);
        MPI_Type_free(&spread);
        MPI_Win_free(&win);
    }
    return check::finish();
}
