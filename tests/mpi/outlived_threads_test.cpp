// One of several daemons dies while several threads of each rank use the same window. The window outlives it:
// all puts and gets of all threads happen, and each update once. Errors are returned here, because a device
// may die while it applies an update, which cannot be saved. Then nobody knows about that update only.
// outlived_threads_test nobody | VICTIM STATE [MS]
//   nobody   no daemon dies
//   VICTIM   the rank whose daemon dies (several_daemons.sh), after MS milliseconds (5)
//   STATE    `stopped`: the daemon has stopped before the operations start, so nothing is in doubt
//            `running`: it dies at any moment
#include <mpi.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string_view>
#include <thread>
#include <vector>

#include "check.h"
#include "kill_daemon.h"

namespace {

constexpr int threads = 4;
constexpr int longs = 500;  // of each thread of each origin, at each target
constexpr int rounds_before = 40, rounds_after = 10;

int rank, ranks;
std::atomic<int> errors{0};
MPI_Win win;
MPI_Datatype spread;  // every other number

// At each rank: the numbers of each thread of each origin, a counter of each such thread, and numbers that
// nobody changes.
int numbers_at(int origin, int thread) {
    return (origin * threads + thread) * longs;
}
int counter_at(int origin, int thread) {
    return ranks * threads * longs + origin * threads + thread;
}
int constants_at() {
    return counter_at(ranks, 0);
}
std::int64_t constant(int owner, int i) {
    return 5000 * owner + i;
}

// Whether the call succeeded. Every error ends at most the updates of one round.
bool good(int result) {
    if (result != MPI_SUCCESS) ++errors;
    return result == MPI_SUCCESS;
}

// One round of one thread: a put, a get into memory with gaps and an update at every rank. They are complete
// at the end, by a flush of all targets or of each one.
void round_of(int thread, int round) {
    const auto count = static_cast<std::size_t>(ranks);
    std::vector<std::vector<std::int64_t>> puts(count), gets(count);
    const std::int64_t one = 1;
    for (int target = 0; target < ranks; ++target) {
        auto& put = puts[static_cast<std::size_t>(target)];
        auto& got = gets[static_cast<std::size_t>(target)];
        put.resize(longs);
        std::iota(put.begin(), put.end(), 1000 * round + thread);
        got.assign(longs, -1);
        good(MPI_Put(put.data(), longs, MPI_INT64_T, target, numbers_at(rank, thread), longs, MPI_INT64_T,
                     win));
        good(MPI_Get(got.data(), 1, spread, target, constants_at(), longs / 2, MPI_INT64_T, win));
        good(MPI_Accumulate(&one, 1, MPI_INT64_T, target, counter_at(rank, thread), 1, MPI_INT64_T, MPI_SUM,
                            win));
    }
    bool all = true;
    if (thread % 2 == 0) {
        all = good(MPI_Win_flush_all(win));
    } else {
        for (int target = 0; target < ranks; ++target)
            all &= good(MPI_Win_flush(target, win));
    }
    for (int target = 0; all && target < ranks; ++target)
        for (int i = 0; i < longs; ++i) {
            const std::int64_t wanted = i % 2 == 0 ? constant(target, i / 2) : -1;
            const std::int64_t got = gets[static_cast<std::size_t>(target)][static_cast<std::size_t>(i)];
            check::that(got == wanted, "thread {}, round {}: number {} of rank {} is {}, not {}", thread,
                        round, i, target, got, wanted);
            if (got != wanted) break;
        }
}

void rounds(int first, int count) {
    std::array<std::thread, threads> all;
    for (int thread = 0; thread < threads; ++thread)
        all[static_cast<std::size_t>(thread)] = std::thread([=] {
            for (int i = 0; i < count; ++i)
                round_of(thread, first + i);
        });
    for (std::thread& each : all)
        each.join();
}

}  // namespace

int main(int argc, char** argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    check::that(provided == MPI_THREAD_MULTIPLE, "the host's MPI provides thread level {}", provided);
    const bool nobody = argc < 2 || std::string_view(argv[1]) == "nobody";
    const int victim = nobody ? -1 : std::atoi(argv[1]);
    const bool stopped = argc > 2 && std::string_view(argv[2]) == "stopped";
    const int delay_ms = argc > 3 ? std::atoi(argv[3]) : 5;
    rank = check::rank_of(MPI_COMM_WORLD);
    ranks = check::size_of(MPI_COMM_WORLD);
    MPI_Type_vector(longs / 2, 1, 2, MPI_INT64_T, &spread);
    MPI_Type_commit(&spread);
    std::vector<std::int64_t> memory(static_cast<std::size_t>(constants_at()) + longs, 0);
    for (int i = 0; i < longs; ++i)
        memory[static_cast<std::size_t>(constants_at() + i)] = constant(rank, i);
    MPI_Win_create(memory.data(), static_cast<MPI_Aint>(memory.size() * 8), 8, MPI_INFO_NULL, MPI_COMM_WORLD,
                   &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, win);
    rounds(0, 2);
    PMPI_Barrier(MPI_COMM_WORLD);
    if (rank == victim && stopped) check::kill_daemon(SIGSTOP);
    PMPI_Barrier(MPI_COMM_WORLD);
    std::thread killer;
    if (rank == victim)
        killer = std::thread([=] {
            std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
            check::kill_daemon(SIGKILL);
        });
    rounds(2, rounds_before);
    if (killer.joinable()) killer.join();
    PMPI_Barrier(MPI_COMM_WORLD);
    const int errors_before = errors;
    rounds(2 + rounds_before, rounds_after);
    MPI_Win_unlock_all(win);
    PMPI_Barrier(MPI_COMM_WORLD);

    constexpr int all_rounds = 2 + rounds_before + rounds_after;
    int lost = errors;
    check::that(errors == errors_before, "{} errors after the loss", errors - errors_before);
    check::that(!(stopped || nobody) || lost == 0, "{} errors although nothing was in doubt", lost);
    PMPI_Allreduce(MPI_IN_PLACE, &lost, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    for (int origin = 0; origin < ranks; ++origin)
        for (int thread = 0; thread < threads; ++thread) {
            const std::int64_t sum = memory[static_cast<std::size_t>(counter_at(origin, thread))];
            check::that(sum <= all_rounds && sum >= all_rounds - lost * threads,
                        "thread {} of rank {}: {} updates happened instead of {}", thread, origin, sum,
                        all_rounds);
            const std::int64_t last = 1000 * (all_rounds - 1) + thread;
            for (int i = 0; i < longs; ++i) {
                const std::int64_t got = memory[static_cast<std::size_t>(numbers_at(origin, thread) + i)];
                check::that(got == last + i, "thread {} of rank {}: number {} is {}, not {}", thread, origin,
                            i, got, last + i);
                if (got != last + i) break;
            }
        }
    MPI_Win_unlock(rank, win);
    MPI_Win_free(&win);
    MPI_Type_free(&spread);
    if (rank == 0 && lost != 0) std::printf("%d calls ended with errors\n", lost);
    return check::finish();
}
