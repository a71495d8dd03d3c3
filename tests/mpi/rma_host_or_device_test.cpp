// Windows that change between the host's MPI and the device while they are in use: epochs of every kind, with
// meetings of all ranks between and inside them. With argument "evidence": a window moves to the device once
// its ranks compute. With "between": computation between one window and the next does not count.
#include <unistd.h>

#include <numeric>
#include <string_view>

#include "check.h"

namespace {

int me = 0;
int ranks = 1;
constexpr int rounds = 12;

struct Memory {
    Memory(MPI_Comm comm, int longs) : data(static_cast<std::size_t>(longs), 0) {
        MPI_Win_create(data.data(), MPI_Aint{longs} * 8, 8, MPI_INFO_NULL, comm, &win);
    }
    ~Memory() { MPI_Win_free(&win); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    std::vector<std::int64_t> data;
    MPI_Win win = MPI_WIN_NULL;
};

std::int64_t sum_of_ranks() {
    return std::int64_t{ranks} * (ranks - 1) / 2;
}

// One epoch of lock_all lasts over many barriers. All ranks update all others, and a shared counter.
void test_lock_all() {
    Memory at(MPI_COMM_WORLD, 4);
    MPI_Win_lock_all(0, at.win);
    const std::int64_t mine = me, one = 1;
    std::int64_t drawn = 0, drawn_by_me = 0;
    for (int round = 1; round <= rounds; ++round) {
        for (int target = 0; target < ranks; ++target)
            MPI_Accumulate(&mine, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, MPI_SUM, at.win);
        MPI_Fetch_and_op(&one, &drawn, MPI_INT64_T, 0, 1, MPI_SUM, at.win);
        MPI_Win_flush_all(at.win);
        drawn_by_me += drawn;
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_sync(at.win);
        check::that(at.data[0] == round * sum_of_ranks(), "round {}: a sum of {}", round, at.data[0]);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(at.win);
    std::int64_t drawn_by_all = 0;
    MPI_Allreduce(&drawn_by_me, &drawn_by_all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    const std::int64_t count = std::int64_t{rounds} * ranks;
    check::that(drawn_by_all == count * (count - 1) / 2, "a counter gave numbers twice or never");
}

// Operations are not flushed when the ranks meet, and requests are pending then.
void test_pending() {
    constexpr int longs = 20000;
    Memory at(MPI_COMM_WORLD, longs);
    const int right = (me + 1) % ranks, left = (me + ranks - 1) % ranks;
    MPI_Win_lock_all(MPI_MODE_NOCHECK, at.win);
    std::vector<std::int64_t> put(longs / 2), got(longs / 2, -1);
    for (int round = 1; round <= rounds; ++round) {
        std::iota(put.begin(), put.end(), round * 1000 + me);
        MPI_Put(put.data(), longs / 2, MPI_INT64_T, right, 0, longs / 2, MPI_INT64_T, at.win);
        MPI_Request requests[2];
        MPI_Rput(put.data(), longs / 2, MPI_INT64_T, right, longs / 2, longs / 2, MPI_INT64_T, at.win,
                 &requests[0]);
        MPI_Rget(got.data(), 1, MPI_INT64_T, right, longs / 2 - 1, 1, MPI_INT64_T, at.win, &requests[1]);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Win_flush_all(at.win);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_sync(at.win);
        const std::int64_t first = round * 1000 + left;
        check::that(at.data[0] == first && at.data[longs / 2 - 1] == first + longs / 2 - 1 &&
                        at.data[longs / 2] == first && at.data[longs - 1] == first + longs / 2 - 1,
                    "round {}: puts that were pending at a barrier", round);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(at.win);
}

// Each rank adds to a number at rank 0 under an exclusive lock, without atomic operations.
void test_exclusive() {
    Memory at(MPI_COMM_WORLD, 1);
    for (int round = 1; round <= rounds; ++round) {
        std::int64_t value = 0;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, at.win);
        MPI_Get(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, at.win);
        MPI_Win_flush(0, at.win);
        ++value;
        MPI_Put(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, at.win);
        MPI_Win_unlock(0, at.win);
        // One rank keeps a lock that no other rank wants while all meet. The way must not change then.
        if (me == ranks - 1) MPI_Win_lock(MPI_LOCK_SHARED, me, 0, at.win);
        MPI_Barrier(MPI_COMM_WORLD);
        if (me == ranks - 1) MPI_Win_unlock(me, at.win);
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, at.win);
        MPI_Get(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, at.win);
        MPI_Win_unlock(0, at.win);
        check::that(value == std::int64_t{round} * ranks, "round {}: {} under exclusive locks", round, value);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

// Fences follow each other, or have other epochs between them.
void test_fences() {
    Memory at(MPI_COMM_WORLD, ranks);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, at.win);
    for (int round = 1; round <= 2 * rounds; ++round) {
        const std::int64_t value = round * 100 + me;
        for (int target = 0; target < ranks; ++target)
            MPI_Put(&value, 1, MPI_INT64_T, target, me, 1, MPI_INT64_T, at.win);
        // The way cannot change here, because the epoch is open.
        if (round % 3 == 0) MPI_Barrier(MPI_COMM_WORLD);
        const bool last = round % 4 == 0;
        MPI_Win_fence(last ? MPI_MODE_NOSUCCEED : 0, at.win);
        for (int rank = 0; rank < ranks; ++rank)
            check::that(at.data[static_cast<std::size_t>(rank)] == round * 100 + rank,
                        "round {}: a put between fences", round);
        if (!last) {
            // The next puts must not come before all ranks have checked their data.
            MPI_Win_fence(0, at.win);
            continue;
        }
        MPI_Barrier(MPI_COMM_WORLD);
        std::int64_t seen = 0;
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, at.win);
        MPI_Get(&seen, 1, MPI_INT64_T, 0, ranks - 1, 1, MPI_INT64_T, at.win);
        MPI_Win_unlock(0, at.win);
        check::that(seen == round * 100 + ranks - 1, "round {}: a get between fences", round);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_fence(MPI_MODE_NOPRECEDE, at.win);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, at.win);
}

// Post, start, complete and wait: each rank puts to its right neighbour.
void test_groups() {
    if (ranks == 1) return;
    Memory at(MPI_COMM_WORLD, 1);
    MPI_Group world = MPI_GROUP_NULL, right_group = MPI_GROUP_NULL, left_group = MPI_GROUP_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    const int right = (me + 1) % ranks, left = (me + ranks - 1) % ranks;
    MPI_Group_incl(world, 1, &right, &right_group);
    MPI_Group_incl(world, 1, &left, &left_group);
    for (int round = 1; round <= rounds; ++round) {
        const std::int64_t value = round * 10 + me;
        MPI_Win_post(left_group, 0, at.win);
        MPI_Win_start(right_group, 0, at.win);
        if (round % 2 == 0) MPI_Barrier(MPI_COMM_WORLD);
        MPI_Put(&value, 1, MPI_INT64_T, right, 0, 1, MPI_INT64_T, at.win);
        MPI_Win_complete(at.win);
        if (round % 3 == 0) {
            for (int over = 0; over == 0;)
                MPI_Win_test(at.win, &over);
        } else {
            MPI_Win_wait(at.win);
        }
        check::that(at.data[0] == round * 10 + left, "round {}: a put between start and complete", round);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Group_free(&world);
    MPI_Group_free(&right_group);
    MPI_Group_free(&left_group);
}

// Some ranks attach memory on one way and reach it on the other.
void test_dynamic() {
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &half);
    const int size = check::size_of(half), rank = check::rank_of(half);
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_create_dynamic(MPI_INFO_NULL, half, &win);
    std::vector<std::int64_t> memory(1000, 0), later(1000, 0);
    MPI_Win_attach(win, memory.data(), 8000);
    for (int round = 1; round <= rounds; ++round) {
        if (round == 3) MPI_Win_attach(win, later.data(), 8000);
        std::vector<std::int64_t>& used = round < 3 || round == rounds ? memory : later;
        MPI_Aint address = 0;
        MPI_Get_address(used.data(), &address);
        std::vector<MPI_Aint> all(static_cast<std::size_t>(size));
        MPI_Allgather(&address, 1, MPI_AINT, all.data(), 1, MPI_AINT, half);
        const std::int64_t value = round * 10 + rank;
        const int right = (rank + 1) % size, left = (rank + size - 1) % size;
        MPI_Win_lock_all(0, win);
        MPI_Put(&value, 1, MPI_INT64_T, right, all[static_cast<std::size_t>(right)] + 80, 1, MPI_INT64_T,
                win);
        MPI_Win_unlock_all(win);
        MPI_Barrier(half);
        check::that(used[10] == round * 10 + left, "round {}: a put to attached memory", round);
        MPI_Barrier(half);
        if (round == rounds - 1) MPI_Win_detach(win, later.data());
    }
    MPI_Win_detach(win, memory.data());
    MPI_Win_free(&win);
    MPI_Comm_free(&half);
}

// The ranks compute. The window begins with the host's MPI and ends on the device. The summary counts the
// operations there.
void test_evidence() {
    Memory at(MPI_COMM_WORLD, 1);
    const std::int64_t one = 1;
    const int right = (me + 1) % ranks;
    MPI_Win_lock_all(0, at.win);
    for (int round = 0; round < rounds; ++round) {
        // On a loaded machine the first calls may be slow, and this has to be a large part of the time.
        usleep(round == 0 ? 300'000 : 20'000);
        MPI_Accumulate(&one, 1, MPI_INT64_T, right, 0, 1, MPI_INT64_T, MPI_SUM, at.win);
        MPI_Win_flush(right, at.win);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(at.win);
    MPI_Barrier(MPI_COMM_WORLD);
    check::that(at.data[0] == rounds, "{} updates have come, of {}", at.data[0], rounds);
}

// The ranks compute only while there is no window. The summary shows that windows stayed on the host. If
// computation between windows counted, all but the first would begin on the device.
void test_between() {
    const int right = (me + 1) % ranks;
    const std::int64_t mine = me;
    for (int i = 0; i < 4; ++i) {
        usleep(50'000);
        MPI_Barrier(MPI_COMM_WORLD);
        Memory at(MPI_COMM_WORLD, 1);
        MPI_Win_lock(MPI_LOCK_SHARED, right, 0, at.win);
        MPI_Accumulate(&mine, 1, MPI_INT64_T, right, 0, 1, MPI_INT64_T, MPI_SUM, at.win);
        MPI_Win_unlock(right, at.win);
        MPI_Barrier(MPI_COMM_WORLD);
        check::that(at.data[0] == (me + ranks - 1) % ranks, "window {} has {}", i, at.data[0]);
    }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    me = check::rank_of(MPI_COMM_WORLD);
    ranks = check::size_of(MPI_COMM_WORLD);
    const std::string_view part = argc > 1 ? argv[1] : "";
    if (part == "evidence" || part == "between") {
        part == "evidence" ? test_evidence() : test_between();
        return check::finish();
    }
    test_lock_all();
    test_pending();
    test_exclusive();
    test_fences();
    test_groups();
    test_dynamic();
    return check::finish();
}
