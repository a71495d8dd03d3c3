// Several threads of each rank use windows at once: all the same window under one lock_all, and each its own,
// with every way to synchronise. Each kind of update is atomic, whichever thread makes it.
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <thread>

#include "check.h"
#include "window_memory.h"

namespace {

constexpr int threads = 3, rounds = 20, block = 3000;

int rank, size;

// The window that all threads share has counters first, then a block of longs for each thread of each rank.
struct Shared {
    MPI_Win win = MPI_WIN_NULL;
    long* base = nullptr;
};
constexpr int counters = 4;

MPI_Aint block_of(int thread, int origin) {
    return counters + (static_cast<MPI_Aint>(origin) * threads + thread) * block;
}

void share(const Shared& shared, int thread) {
    std::vector<long> out(block), in(block);
    for (int round = 0; round < rounds; ++round) {
        const int target = (rank + thread + round) % size;
        const long one = 1, seven = 7;
        long before = -1;
        MPI_Accumulate(&one, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_SUM, shared.win);
        MPI_Fetch_and_op(&one, &before, MPI_LONG, target, 1, MPI_SUM, shared.win);
        MPI_Request requests[2];
        MPI_Raccumulate(&seven, 1, MPI_LONG, target, 2, 1, MPI_LONG, MPI_SUM, shared.win, &requests[0]);
        std::iota(out.begin(), out.end(), (rank * threads + thread) * 1000000L + round);
        MPI_Rput(out.data(), block, MPI_LONG, target, block_of(thread, rank), block, MPI_LONG, shared.win,
                 &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Win_flush(target, shared.win);
        MPI_Get(in.data(), block, MPI_LONG, target, block_of(thread, rank), block, MPI_LONG, shared.win);
        MPI_Win_flush(target, shared.win);
        check::that(in == out, "thread {}, round {}: what was put to rank {}", thread, round, target);
        check::that(before >= 0 && before < long{rounds} * threads * size, "a counter was {}", before);
        // A lock made of compare-and-swap protects a counter that is only read and written.
        const long zero = 0, mine = rank * threads + thread + 1;
        for (long owner = -1; owner != 0;) {
            MPI_Compare_and_swap(&mine, &zero, &owner, MPI_LONG, 0, 3, shared.win);
            MPI_Win_flush(0, shared.win);
        }
        long owner = 0;
        MPI_Fetch_and_op(&zero, &owner, MPI_LONG, 0, 3, MPI_REPLACE, shared.win);
        MPI_Win_flush(0, shared.win);
        check::that(owner == mine, "thread {} held the lock, and {} was in it", mine, owner);
    }
}

void use_own(MPI_Comm comm, int thread) {
    WindowMemory<long> memory(static_cast<std::size_t>(size) + 1, 0);
    MPI_Win win;
    MPI_Win_create(memory.data(), static_cast<MPI_Aint>(memory.size() * sizeof(long)), sizeof(long),
                   MPI_INFO_NULL, comm, &win);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    for (int target = 0; target < size; ++target) {
        const long value = rank * 100 + thread;
        MPI_Put(&value, 1, MPI_LONG, target, rank, 1, MPI_LONG, win);
        MPI_Win_fence(0, win);
    }
    for (int from = 0; from < size; ++from)
        check::that(memory[static_cast<std::size_t>(from)] == from * 100 + thread,
                    "thread {}: rank {} put {} in a fence", thread, from,
                    memory[static_cast<std::size_t>(from)]);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    // An exclusive lock protects a sum that is read and written.
    for (int round = 0; round < rounds; ++round) {
        long value = 0;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Get(&value, 1, MPI_LONG, 0, size, 1, MPI_LONG, win);
        MPI_Win_flush(0, win);
        ++value;
        MPI_Put(&value, 1, MPI_LONG, 0, size, 1, MPI_LONG, win);
        MPI_Win_unlock(0, win);
    }
    PMPI_Barrier(comm);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    long sum = 0;
    MPI_Get(&sum, 1, MPI_LONG, 0, size, 1, MPI_LONG, win);
    MPI_Win_unlock(0, win);
    check::that(sum == long{rounds} * size, "thread {}: {} under exclusive locks", thread, sum);
    MPI_Group all;
    MPI_Win_get_group(win, &all);
    for (int round = 0; round < rounds; ++round) {
        const long value = round * 7 + thread;
        MPI_Win_post(all, 0, win);
        MPI_Win_start(all, 0, win);
        for (int target = 0; target < size; ++target)
            MPI_Accumulate(&value, 1, MPI_LONG, target, rank, 1, MPI_LONG, MPI_REPLACE, win);
        MPI_Win_complete(win);
        MPI_Win_wait(win);
        for (int from = 0; from < size; ++from)
            check::that(memory[static_cast<std::size_t>(from)] == value, "thread {}: a post of round {}",
                        thread, round);
    }
    MPI_Group_free(&all);
    MPI_Win_free(&win);
}

template <typename Work>
void on_all_threads(Work work) {
    std::vector<std::thread> all;
    for (int thread = 0; thread < threads; ++thread)
        all.emplace_back(work, thread);
    for (std::thread& thread : all)
        thread.join();
}

}  // namespace

int main(int argc, char** argv) {
    int provided = MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided < MPI_THREAD_MULTIPLE) {
        std::puts("skipped: this MPI has no MPI_THREAD_MULTIPLE");
        MPI_Finalize();
        return 77;
    }
    rank = check::rank_of(MPI_COMM_WORLD);
    size = check::size_of(MPI_COMM_WORLD);
    Shared shared;
    const MPI_Aint longs = counters + static_cast<MPI_Aint>(size) * threads * block;
    MPI_Win_allocate(longs * static_cast<MPI_Aint>(sizeof(long)), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD,
                     static_cast<void*>(&shared.base), &shared.win);
    std::fill_n(shared.base, longs, 0L);
    PMPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, shared.win);
    on_all_threads([&](int thread) { share(shared, thread); });
    MPI_Win_flush_all(shared.win);
    PMPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(shared.win);
    long mine[3], all[3];
    std::copy_n(shared.base, 3, mine);
    MPI_Win_unlock_all(shared.win);
    PMPI_Allreduce(mine, all, 3, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    const long updates = long{rounds} * threads * size;
    check::that(all[0] == updates && all[1] == updates && all[2] == 7 * updates,
                "{}, {} and {} after {} updates of each kind", all[0], all[1], all[2], updates);
    MPI_Win_free(&shared.win);

    std::vector<MPI_Comm> comms(threads);
    for (MPI_Comm& comm : comms)
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    on_all_threads([&](int thread) { use_own(comms[static_cast<std::size_t>(thread)], thread); });
    for (MPI_Comm& comm : comms)
        MPI_Comm_free(&comm);
    return check::finish();
}
