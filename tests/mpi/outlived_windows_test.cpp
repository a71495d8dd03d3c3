// One of several daemons dies while windows have operations outstanding, locks held and epochs open. The
// windows outlive it: all operations happen, updates exactly once, and the epochs after that work. Errors are
// fatal here, as by default. The daemon is stopped before the operations start, so it has done none of them.
// outlived_windows_test VICTIM [stop]: the rank whose daemon dies (several_daemons.sh). stop: it stays
// stopped.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "check.h"
#include "kill_daemon.h"

namespace {

constexpr int longs = 2000;  // for each origin
int rank, ranks;

using Numbers = std::vector<std::int64_t>;

// At each rank: `longs` numbers of each origin for puts, then as many for sums, then a counter, a word for
// swaps, and `longs` numbers that nobody changes.
struct Memory {
    explicit Memory(const char* its_name, bool allocated) : name(its_name) {
        const int count = sums() + longs + 2 + longs;
        if (allocated) {
            MPI_Win_allocate(count * MPI_Aint{8}, 8, MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&data),
                             &win);
        } else {
            own.resize(static_cast<std::size_t>(count));
            data = own.data();
            MPI_Win_create(data, count * MPI_Aint{8}, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        }
        for (int i = 0; i < count; ++i)
            data[i] = i < constants() ? 0 : 5000 * rank + i;
        PMPI_Barrier(MPI_COMM_WORLD);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    static int sums() { return ranks * longs; }
    static int counter() { return sums() + longs; }
    static int word() { return counter() + 1; }
    static int constants() { return word() + 1; }

    const char* name;
    Numbers own;
    std::int64_t* data = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    bool in_lock_all = false;
    // Of the operations of an epoch.
    std::vector<Numbers> origins, results;
    std::vector<MPI_Request> requests;
};

Numbers numbers(std::int64_t first) {
    Numbers all(longs);
    std::iota(all.begin(), all.end(), first);
    return all;
}

// Puts numbers of this rank, gets constants and adds ones, at every rank. Every other number of the sums is
// reached by a type with gaps.
void operate(Memory& m, std::int64_t value, bool with_requests) {
    m.origins.clear();
    m.results.clear();
    m.origins.reserve(static_cast<std::size_t>(2 * ranks));
    m.results.reserve(static_cast<std::size_t>(ranks));
    MPI_Datatype spread = MPI_DATATYPE_NULL;
    MPI_Type_vector(longs / 2, 1, 2, MPI_INT64_T, &spread);
    MPI_Type_commit(&spread);
    for (int target = 0; target < ranks; ++target) {
        Numbers& put = m.origins.emplace_back(numbers(value + 100 * rank));
        Numbers& ones = m.origins.emplace_back(longs / 2, 1);
        Numbers& got = m.results.emplace_back(longs, -1);
        if (with_requests) {
            m.requests.resize(m.requests.size() + 3);
            MPI_Request* const r = &m.requests.back() - 2;
            MPI_Rput(put.data(), longs, MPI_INT64_T, target, rank * longs, longs, MPI_INT64_T, m.win, r);
            MPI_Rget(got.data(), longs, MPI_INT64_T, target, Memory::constants(), longs, MPI_INT64_T, m.win,
                     r + 1);
            MPI_Raccumulate(ones.data(), longs / 2, MPI_INT64_T, target, Memory::sums(), 1, spread, MPI_SUM,
                            m.win, r + 2);
        } else {
            MPI_Put(put.data(), longs, MPI_INT64_T, target, rank * longs, longs, MPI_INT64_T, m.win);
            MPI_Get(got.data(), longs, MPI_INT64_T, target, Memory::constants(), longs, MPI_INT64_T, m.win);
            MPI_Accumulate(ones.data(), longs / 2, MPI_INT64_T, target, Memory::sums(), 1, spread, MPI_SUM,
                           m.win);
        }
    }
    MPI_Type_free(&spread);
}

// When all ranks have completed the operations, after `epochs` of them.
void check_memory(const Memory& m, std::int64_t value, int epochs) {
    PMPI_Barrier(MPI_COMM_WORLD);
    if (m.in_lock_all) MPI_Win_sync(m.win);
    for (int origin = 0; origin < ranks; ++origin) {
        const Numbers wanted = numbers(value + 100 * origin);
        check::that(std::equal(wanted.begin(), wanted.end(), m.data + origin * longs),
                    "{}, epoch {}: the numbers of rank {} are wrong", m.name, epochs, origin);
    }
    for (int i = 0; i < longs; ++i) {
        const std::int64_t wanted = i % 2 == 0 ? std::int64_t{ranks} * epochs : 0;
        check::that(m.data[Memory::sums() + i] == wanted, "{}, epoch {}: sum {} is {}, not {}", m.name,
                    epochs, i, m.data[Memory::sums() + i], wanted);
    }
    for (int target = 0; target < ranks; ++target)
        check::that(
            m.results[static_cast<std::size_t>(target)] == numbers(5000 * target + Memory::constants()),
            "{}, epoch {}: what was got from rank {} is wrong", m.name, epochs, target);
    PMPI_Barrier(MPI_COMM_WORLD);
}

// Adds one to the counter of a rank, under an exclusive lock, by a get and a put.
void count_up(Memory& m, int target) {
    std::int64_t before = 0;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, m.win);
    MPI_Get(&before, 1, MPI_INT64_T, target, Memory::counter(), 1, MPI_INT64_T, m.win);
    MPI_Win_flush(target, m.win);
    const std::int64_t after = before + 1;
    MPI_Put(&after, 1, MPI_INT64_T, target, Memory::counter(), 1, MPI_INT64_T, m.win);
    MPI_Win_unlock(target, m.win);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int victim = argc > 1 ? std::atoi(argv[1]) : 0;
    const bool stays_stopped = argc > 2;
    rank = check::rank_of(MPI_COMM_WORLD);
    ranks = check::size_of(MPI_COMM_WORLD);
    {
        Memory fenced("fences", false), posted("post and start", false), locked("lock_all", false),
            requested("requests", true), single("locks", true);
        std::vector<int> daemons(static_cast<std::size_t>(ranks));
        const int own_daemon = check::number_of_daemon();
        PMPI_Allgather(&own_daemon, 1, MPI_INT, daemons.data(), 1, MPI_INT, MPI_COMM_WORLD);
        const auto lives = [&](int each) {
            return daemons[static_cast<std::size_t>(each)] != daemons[static_cast<std::size_t>(victim)];
        };
        MPI_Group everybody;
        MPI_Comm_group(MPI_COMM_WORLD, &everybody);
        const auto finish_requests = [&] {
            MPI_Waitall(static_cast<int>(requested.requests.size()), requested.requests.data(),
                        MPI_STATUSES_IGNORE);
            requested.requests.clear();
        };
        MPI_Win_lock_all(0, locked.win);
        MPI_Win_lock_all(0, requested.win);
        locked.in_lock_all = requested.in_lock_all = true;
        const auto open = [&] {
            MPI_Win_fence(MPI_MODE_NOPRECEDE, fenced.win);
            MPI_Win_post(everybody, 0, posted.win);
            MPI_Win_start(everybody, 0, posted.win);
        };
        const auto start = [&](std::int64_t value) {
            operate(fenced, value, false);
            operate(posted, value, false);
            operate(locked, value, false);
            operate(requested, value, true);
        };
        const auto complete = [&](std::int64_t value, int epochs) {
            MPI_Win_flush_all(locked.win);
            check_memory(locked, value, epochs);
            finish_requests();
            check_memory(requested, value, epochs);
            MPI_Win_complete(posted.win);
            MPI_Win_wait(posted.win);
            check_memory(posted, value, epochs);
            MPI_Win_fence(MPI_MODE_NOSUCCEED, fenced.win);
            check_memory(fenced, value, epochs);
        };
        open();
        start(1000);
        complete(1000, 1);
        open();
        // Every rank holds the lock of the next one when the daemon dies.
        const int next = (rank + 1) % ranks;
        std::int64_t before = 0, after = 1, found = -1, swapped = -1, fetched = -1;
        const std::int64_t mine = 77 + rank, zero = 0;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, single.win);
        MPI_Get(&before, 1, MPI_INT64_T, next, Memory::counter(), 1, MPI_INT64_T, single.win);
        MPI_Win_flush(next, single.win);
        PMPI_Barrier(MPI_COMM_WORLD);
        if (rank == victim) check::kill_daemon(SIGSTOP);
        PMPI_Barrier(MPI_COMM_WORLD);
        start(2000);
        MPI_Put(&after, 1, MPI_INT64_T, next, Memory::counter(), 1, MPI_INT64_T, single.win);
        MPI_Compare_and_swap(&mine, &zero, &swapped, MPI_INT64_T, next, Memory::word(), single.win);
        MPI_Fetch_and_op(&mine, &fetched, MPI_INT64_T, next, Memory::sums(), MPI_SUM, single.win);
        // What devices that live have fetched must not be on its way when they notice the loss.
        if (lives(rank) && lives(next)) MPI_Win_flush(next, single.win);
        PMPI_Barrier(MPI_COMM_WORLD);
        const auto lost = std::chrono::steady_clock::now();
        if (rank == victim && !stays_stopped) check::kill_daemon(SIGKILL);
        MPI_Win_flush(next, single.win);
        check::that(swapped == 0 && fetched == 0, "a swap gave {}, an update {}", swapped, fetched);
        MPI_Get(&found, 1, MPI_INT64_T, next, Memory::word(), 1, MPI_INT64_T, single.win);
        MPI_Win_unlock(next, single.win);
        check::that(found == mine, "a word is {}, not {}", found, mine);
        for (int i = 0; i < 5; ++i)
            for (int target = 0; target < ranks; ++target)
                count_up(single, target);
        complete(2000, 2);
        for (int i = 0; i < 3; ++i) {
            open();
            start(3000 + i);
            complete(3000 + i, 3 + i);
        }
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - lost;
        check::that(took.count() < 30, "all of it took {:.1f} s", took.count());
        PMPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, single.win);
        check::that(single.data[Memory::counter()] == 1 + 5 * ranks, "the counter is {}, not {}",
                    single.data[Memory::counter()], 1 + 5 * ranks);
        MPI_Win_unlock(rank, single.win);
        MPI_Win_unlock_all(locked.win);
        MPI_Win_unlock_all(requested.win);
        MPI_Group_free(&everybody);
        for (Memory* each : {&fenced, &posted, &locked, &requested, &single})
            MPI_Win_free(&each->win);
    }
    return check::finish();
}
