// One-sided communication: updates by all ranks at once, of every type, of pairs and with atomic operations.
#include "rma_test.h"

#include <unistd.h>

#include <algorithm>
#include <numeric>

namespace rma_test {

namespace {

template <typename T>
void test_update(MPI_Datatype type, const char* name, MPI_Op op, T start, T operand, T expected) {
    constexpr std::size_t wide = 700;
    WindowMemory<T> memory(wide, start);
    std::vector<T> operands(wide, operand), before(wide);
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_create(memory.data(), static_cast<MPI_Aint>(wide * sizeof(T)), sizeof(T), MPI_INFO_NULL,
                   MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    MPI_Accumulate(operands.data(), wide - 5, type, 0, 5, wide - 5, type, op, win);
    MPI_Win_fence(0, win);
    if (me == 0) {
        check::that(memory[4] == start && memory[5] == expected && memory[wide - 1] == expected,
                    "accumulate of {} by all ranks", name);
    }
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Get_accumulate(nullptr, 0, type, before.data(), wide, type, 0, 0, wide, type, MPI_NO_OP, win);
    MPI_Win_unlock(0, win);
    check::that(before[4] == start && before[wide - 1] == expected, "get_accumulate of {} with MPI_NO_OP",
                name);
    MPI_Win_free(&win);
}

}  // namespace

void test_updates() {
    const double n = ranks;
    test_update<int>(MPI_INT, "int", MPI_SUM, 1, 2, 1 + 2 * ranks);
    test_update<double>(MPI_DOUBLE, "double", MPI_SUM, 0.5, 1.5, 0.5 + 1.5 * n);
    test_update<float>(MPI_FLOAT, "float", MPI_MAX, 1.0F, 7.0F, 7.0F);
    test_update<unsigned char>(MPI_UNSIGNED_CHAR, "unsigned char", MPI_BOR, 1, 6, 7);
    test_update<std::int64_t>(MPI_INT64_T, "int64", MPI_MIN, 4, -3, -3);
    test_update<short>(MPI_SHORT, "short", MPI_REPLACE, 4, 9, 9);
    test_update<std::uint32_t>(MPI_UINT32_T, "uint32", MPI_LAND, 4, 0, 0);
}

// Pairs have gaps with undefined contents, which must not disturb. (Open MPI 4.1 writes beyond the window.)
void test_pairs() {
    struct Pair {
        double value;
        int index;
    };
    WindowMemory<Pair> memory(50, {0.0, -1});
    std::vector<Pair> mine(50);
    for (std::size_t i = 0; i < mine.size(); ++i)
        mine[i] = {static_cast<double>((me * 31 + static_cast<int>(i) * 17) % 23), me};
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_create(memory.data(), 50 * sizeof(Pair), sizeof(Pair), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    MPI_Accumulate(mine.data(), 50, MPI_DOUBLE_INT, ranks - 1, 0, 50, MPI_DOUBLE_INT, MPI_MAXLOC, win);
    MPI_Win_fence(0, win);
    if (me == ranks - 1) {
        bool good = true;
        for (int i = 0; i < 50; ++i) {
            Pair best{0.0, -1};
            for (int r = 0; r < ranks; ++r) {
                const double value = (r * 31 + i * 17) % 23;
                if (value > best.value) best = {value, r};
            }
            const Pair& found = memory[static_cast<std::size_t>(i)];
            // If the values are equal, the smallest index wins. That is the initial -1 here.
            good = good && found.value == best.value && found.index == best.index;
        }
        check::that(good, "MPI_MAXLOC by all ranks");
    }
    // Pairs are put with a type that skips every other one.
    MPI_Win_fence(0, win);
    MPI_Datatype other = MPI_DATATYPE_NULL;
    MPI_Type_vector(10, 1, 2, MPI_DOUBLE_INT, &other);
    MPI_Type_commit(&other);
    if (me == 0) MPI_Put(mine.data(), 10, MPI_DOUBLE_INT, ranks - 1, 0, 1, other, win);
    MPI_Win_fence(0, win);
    if (me == ranks - 1 && ranks > 1)
        check::that(memory[18].index == 0 && memory[18].value == (9 * 17) % 23, "put of pairs");
    MPI_Type_free(&other);
    MPI_Win_free(&win);
}

// All ranks draw from counters, and use locks made of atomic operations and locks of MPI.
void test_atomics() {
    constexpr int draws = 60;
    std::int64_t* memory = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_allocate(8 * sizeof(std::int64_t), sizeof(std::int64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                     &win);
    std::fill(memory, memory + 8, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    const std::int64_t one = 1;
    std::vector<std::int64_t> tickets(draws);
    MPI_Win_lock_all(0, win);
    for (std::int64_t& ticket : tickets) {
        MPI_Fetch_and_op(&one, &ticket, MPI_INT64_T, 0, 3, MPI_SUM, win);
        MPI_Win_flush(0, win);
    }
    std::vector<std::int64_t> all(static_cast<std::size_t>(draws * ranks));
    PMPI_Gather(tickets.data(), draws, MPI_INT64_T, all.data(), draws, MPI_INT64_T, 0, MPI_COMM_WORLD);
    if (me == 0) {
        std::sort(all.begin(), all.end());
        bool good = true;
        for (std::size_t i = 0; i < all.size(); ++i)
            good = good && all[i] == static_cast<std::int64_t>(i);
        check::that(good, "tickets of fetch_and_op are not 0, 1, 2, ...");
    }
    check::that(std::is_sorted(tickets.begin(), tickets.end()), "tickets of one rank out of order");

    // A lock made of compare_and_swap protects a read-modify-write by plain gets and puts.
    for (int i = 0; i < 5; ++i) {
        const std::int64_t free = 0;
        const std::int64_t mine = me + 1;
        std::int64_t found = -1;
        while (found != 0) {
            MPI_Compare_and_swap(&mine, &free, &found, MPI_INT64_T, 0, 4, win);
            MPI_Win_flush(0, win);
            if (found != 0) usleep(200);
        }
        std::int64_t value = 0;
        MPI_Get(&value, 1, MPI_INT64_T, 0, 5, 1, MPI_INT64_T, win);
        MPI_Win_flush(0, win);
        ++value;
        MPI_Put(&value, 1, MPI_INT64_T, 0, 5, 1, MPI_INT64_T, win);
        MPI_Win_flush(0, win);
        MPI_Accumulate(&free, 1, MPI_INT64_T, 0, 4, 1, MPI_INT64_T, MPI_REPLACE, win);
        MPI_Win_flush(0, win);
    }
    MPI_Win_unlock_all(win);

    for (int i = 0; i < 5; ++i) {
        std::int64_t value = 0;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, ranks - 1, 0, win);
        MPI_Get(&value, 1, MPI_INT64_T, ranks - 1, 6, 1, MPI_INT64_T, win);
        MPI_Win_flush(ranks - 1, win);
        ++value;
        MPI_Put(&value, 1, MPI_INT64_T, ranks - 1, 6, 1, MPI_INT64_T, win);
        MPI_Win_unlock(ranks - 1, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win);
    if (me == 0)
        check::that(memory[5] == 5 * ranks, "{} instead of {} behind a lock of compare_and_swap", memory[5],
                    5 * ranks);
    if (me == ranks - 1)
        check::that(memory[6] == 5 * ranks, "{} instead of {} behind exclusive locks", memory[6], 5 * ranks);
    MPI_Win_unlock(me, win);
    MPI_Win_free(&win);
}

}  // namespace rma_test
