// The memory of windows: accesses that span adjacent attached ranges, memory that is freed while a window has
// it, and memory that outlives MPI.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

namespace {

int me = 0;
int ranks = 1;

std::vector<MPI_Aint> addresses_of(const void* mine) {
    MPI_Aint address = 0;
    MPI_Get_address(mine, &address);
    std::vector<MPI_Aint> all(static_cast<std::size_t>(ranks));
    PMPI_Allgather(&address, 1, MPI_AINT, all.data(), 1, MPI_AINT, MPI_COMM_WORLD);
    return all;
}

// The ints lie in two adjacent ranges. The first range ends in the middle of an int.
void test_neighbours(int* memory, int count) {
    std::fill_n(memory, count, 0);
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    const MPI_Aint bytes = MPI_Aint{count} * 4;
    const MPI_Aint first = bytes / 8 * 4 + 2;
    MPI_Win_attach(win, memory, first);
    MPI_Win_attach(win, reinterpret_cast<char*>(memory) + first, bytes - first);
    const int right = (me + 1) % ranks;
    const int left = (me + ranks - 1) % ranks;
    const MPI_Aint there = addresses_of(memory)[static_cast<std::size_t>(right)];
    std::vector<int> data(static_cast<std::size_t>(count)), back(data.size()), few(10, 5), more(10);
    for (int i = 0; i < count; ++i)
        data[static_cast<std::size_t>(i)] = me * 1000 + i;
    const int border = count / 2;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win);
    MPI_Put(data.data(), count, MPI_INT, right, there, count, MPI_INT, win);
    MPI_Win_flush(right, win);
    MPI_Get(back.data(), count, MPI_INT, right, there, count, MPI_INT, win);
    MPI_Win_flush(right, win);
    check::that(back == data, "a get that spans two ranges of {} bytes in all", bytes);
    MPI_Accumulate(few.data(), 10, MPI_INT, right, there + 4 * (border - 5), 10, MPI_INT, MPI_SUM, win);
    MPI_Get_accumulate(few.data(), 10, MPI_INT, more.data(), 10, MPI_INT, right, there + 4 * (border - 5), 10,
                       MPI_INT, MPI_SUM, win);
    MPI_Win_flush(right, win);
    // Pieces with gaps between them. The border lies inside one of them.
    MPI_Datatype other = MPI_DATATYPE_NULL;
    MPI_Type_vector(4, 3, 6, MPI_INT, &other);
    MPI_Type_commit(&other);
    std::vector<int> minus(12, -1);
    MPI_Put(minus.data(), 12, MPI_INT, right, there + 4 * (border + 5 - 12), 1, other, win);
    MPI_Type_free(&other);
    MPI_Win_unlock(right, win);
    bool good = true;
    for (int i = 0; i < 10; ++i)
        good = good && more[static_cast<std::size_t>(i)] == me * 1000 + border - 5 + i + 5;
    check::that(good, "what a get_accumulate across a border brings");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win);
    good = true;
    for (int i = 0; i < count; ++i) {
        int expected = left * 1000 + i + (i >= border - 5 && i < border + 5 ? 10 : 0);
        const int at = i - (border + 5 - 12);
        if (at >= 0 && at < 21 && at % 6 < 3) expected = -1;
        good = good && memory[i] == expected;
    }
    check::that(good, "puts and updates that span two ranges of {} bytes in all", bytes);
    MPI_Win_unlock(me, win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_detach(win, memory);
    MPI_Win_detach(win, reinterpret_cast<char*>(memory) + first);
    MPI_Win_free(&win);
}

// Memory is freed while windows use it. Other ranks continue to use it, and no rank waits.
void test_freed() {
    constexpr int count = 1 << 16;
    for (const bool dynamic : {false, true}) {
        void* base = nullptr;
        MPI_Alloc_mem(count * 4, MPI_INFO_NULL, static_cast<void*>(&base));
        std::fill_n(static_cast<int*>(base), count, -1);
        const int right = (me + 1) % ranks;
        const int left = (me + ranks - 1) % ranks;
        MPI_Win win = MPI_WIN_NULL;
        MPI_Aint there = 0;
        if (dynamic) {
            MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
            MPI_Win_attach(win, base, count * 4);
            there = addresses_of(base)[static_cast<std::size_t>(right)];
        } else {
            MPI_Win_create(base, count * 4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        }
        MPI_Win_fence(0, win);
        MPI_Put(&me, 1, MPI_INT, right, there, 1, MPI_INT, win);
        MPI_Win_fence(0, win);
        check::that(*static_cast<int*>(base) == left, "a put before memory was freed");
        MPI_Free_mem(base);
        std::vector<int> back(10);
        MPI_Win_fence(0, win);
        MPI_Get(back.data(), 10, MPI_INT, right, there, 10, MPI_INT, win);
        MPI_Win_fence(0, win);
        // The host's libraries may have reused the memory.
        if (std::getenv("KEEPS_FREED") != nullptr)
            check::that(back[0] == me && back[9] == -1, "a get from memory that was freed");
        if (dynamic) MPI_Win_detach(win, base);
        MPI_Win_free(&win);
    }
}

// A forked child has a copy of its own, whatever the parent and the other ranks write later.
void test_child(const char* kind, char* memory, std::size_t bytes) {
    const auto is_filled = [&](char value) {
        return std::all_of(memory, memory + bytes, [&](char each) { return each == value; });
    };
    std::memset(memory, 1, bytes);
    int go[2];
    check::that(pipe(go) == 0, "a pipe");
    const pid_t child = fork();
    if (child == 0) {
        char word = 0;
        const bool told = read(go[0], &word, 1) == 1;
        const bool as_before = is_filled(1);
        std::memset(memory, 3, bytes);
        _exit(told && as_before ? 0 : 1);
    }
    std::memset(memory, 2, bytes);
    check::that(write(go[1], "g", 1) == 1, "a word to the child");
    int status = 1;
    check::that(waitpid(child, &status, 0) == child && status == 0, "{}: the child saw its parent's writes",
                kind);
    check::that(is_filled(2), "{}: the parent saw its child's writes", kind);
    for (const int end : go)
        close(end);
}

void test_children() {
    constexpr std::size_t bytes = 1 << 21;
    char* memory = nullptr;
    MPI_Alloc_mem(bytes, MPI_INFO_NULL, static_cast<void*>(&memory));
    test_child("MPI_Alloc_mem", memory, bytes);
    MPI_Free_mem(memory);
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&memory), &win);
    test_child("MPI_Win_allocate", memory, bytes);
    MPI_Win_free(&win);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    me = check::rank_of(MPI_COMM_WORLD);
    ranks = check::size_of(MPI_COMM_WORLD);
    std::vector<int> own(100000);
    test_neighbours(own.data(), 100);
    test_neighbours(own.data(), 100000);
    void* mapped = nullptr;
    MPI_Alloc_mem(1 << 19, MPI_INFO_NULL, static_cast<void*>(&mapped));
    test_neighbours(static_cast<int*>(mapped), 1 << 17);
    MPI_Free_mem(mapped);
    if (ranks > 1) test_freed();
    test_children();

    MPI_Alloc_mem(1 << 19, MPI_INFO_NULL, static_cast<void*>(&mapped));
    std::memset(mapped, 42, 1 << 19);
    const int result = check::finish();
    const auto* const left = static_cast<const char*>(mapped);
    return left[0] == 42 && left[(1 << 19) - 1] == 42 ? result : 1;
}
