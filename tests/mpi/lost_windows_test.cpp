// One of several daemons dies while windows of all flavors exist. All operations are done all the same, and
// at the next call in which all ranks of a window meet, the window leaves the device. Two or more ranks, with
// two or more daemons (several_daemons.sh), and all windows on the device; the last rank's daemon dies.
#include <mpi.h>

#include <chrono>
#include <vector>

#include "check.h"
#include "kill_daemon.h"

namespace {

constexpr int longs = 4096;
int rank, ranks;
int next, previous;  // of this rank, in the circle of all ranks

enum class By { fence, lock_all };

// A window with `longs` numbers at each rank.
struct Memory {
    enum class Flavor { create, allocate, dynamic };

    Memory(Flavor flavor, MPI_Comm comm) : memory(longs, -1) {
        const MPI_Aint bytes = MPI_Aint{longs} * 8;
        MPI_Aint mine = 0;
        data = memory.data();
        if (flavor == Flavor::create) {
            MPI_Win_create(data, bytes, 8, MPI_INFO_NULL, comm, &win);
        } else if (flavor == Flavor::allocate) {
            MPI_Win_allocate(bytes, 8, MPI_INFO_NULL, comm, static_cast<void*>(&data), &win);
        } else {
            MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win);
            MPI_Win_attach(win, data, bytes);
            MPI_Get_address(data, &mine);
        }
        std::vector<MPI_Aint> all(static_cast<std::size_t>(ranks));
        PMPI_Allgather(&mine, 1, MPI_AINT, all.data(), 1, MPI_AINT, comm);
        at = all[static_cast<std::size_t>(next)];
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    std::vector<std::int64_t> memory;
    std::int64_t* data = nullptr;
    MPI_Aint at = 0;  // of the next rank's numbers
    MPI_Win win = MPI_WIN_NULL;
};

bool all_good(bool mine) {
    int good = mine ? 1 : 0;
    PMPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return good == 1;
}

// Puts numbers to the next rank. Returns whether all calls of all ranks went well.
bool put(Memory& window, By by, MPI_Comm comm, std::int64_t first) {
    std::vector<std::int64_t> numbers(longs);
    for (std::size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = first + rank + static_cast<std::int64_t>(i);
    const auto meet = [&] { return by == By::fence ? MPI_Win_fence(0, window.win) : MPI_Barrier(comm); };
    bool good = meet() == MPI_SUCCESS;
    good = MPI_Put(numbers.data(), longs, MPI_INT64_T, next, window.at, longs, MPI_INT64_T, window.win) ==
               MPI_SUCCESS &&
           good;
    if (by == By::lock_all) good = MPI_Win_flush_all(window.win) == MPI_SUCCESS && good;
    good = meet() == MPI_SUCCESS && good;
    if (by == By::lock_all) MPI_Win_sync(window.win);
    if (!all_good(good)) return false;
    for (int i = 0; i < longs; ++i)
        check::that(window.data[i] == first + previous + i, "number {} of a window is {}, not {}", i,
                    window.data[i], first + previous + i);
    // No rank puts again before all ranks have checked their numbers.
    PMPI_Barrier(MPI_COMM_WORLD);
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    rank = check::rank_of(MPI_COMM_WORLD);
    ranks = check::size_of(MPI_COMM_WORLD);
    next = (rank + 1) % ranks;
    previous = (rank + ranks - 1) % ranks;
    {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        using Flavor = Memory::Flavor;
        Memory created(Flavor::create, comm), allocated(Flavor::allocate, comm),
            dynamic(Flavor::dynamic, comm), locked(Flavor::create, comm), idle(Flavor::create, comm);
        MPI_Win_lock_all(0, locked.win);
        struct Used {
            const char* name;
            Memory& window;
            By by;
        };
        const std::vector<Used> used = {{"MPI_Win_create", created, By::fence},
                                        {"MPI_Win_allocate", allocated, By::fence},
                                        {"MPI_Win_create_dynamic", dynamic, By::fence},
                                        {"MPI_Win_lock_all", locked, By::lock_all}};
        for (const Used& each : used)
            check::that(put(each.window, each.by, comm, 1000), "{}: failed while all daemons lived",
                        each.name);
        if (rank == ranks - 1) check::kill_daemon();
        PMPI_Barrier(MPI_COMM_WORLD);

        const auto start = std::chrono::steady_clock::now();
        for (const Used& each : used) {
            check::that(put(each.window, each.by, comm, 2000), "{}: the epoch of the loss failed", each.name);
            for (int round = 0; round < 3; ++round)
                check::that(put(each.window, each.by, comm, 3000 + 100 * round),
                            "{}: an epoch after the loss failed", each.name);
        }
        // Memory is attached after the loss.
        std::vector<std::int64_t> later(8);
        check::that(MPI_Win_attach(dynamic.win, later.data(), 64) == MPI_SUCCESS &&
                        MPI_Win_detach(dynamic.win, later.data()) == MPI_SUCCESS,
                    "memory cannot be attached and detached after the loss");
        check::that(MPI_Win_unlock_all(locked.win) == MPI_SUCCESS, "MPI_Win_unlock_all failed");
        for (const Used& each : used) {
            check::that(MPI_Win_fence(MPI_MODE_NOSUCCEED, each.window.win) == MPI_SUCCESS,
                        "{}: the last fence failed", each.name);
            check::that(MPI_Win_free(&each.window.win) == MPI_SUCCESS, "{}: MPI_Win_free failed", each.name);
        }
        MPI_Win_free(&idle.win);
        check::that(idle.win == MPI_WIN_NULL, "a window without operations was not freed");
        MPI_Comm_free(&comm);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        check::that(took.count() < 30, "all of it took {:.1f} s", took.count());
    }
    return check::finish();
}
