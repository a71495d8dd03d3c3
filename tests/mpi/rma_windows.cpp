// One-sided communication: dynamic windows, what a window reports and outlives, and errors.
#include "rma_test.h"

#include <memory>

namespace rma_test {

void test_dynamic() {
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    std::vector<int> first(1000, 0), second(20000, 0);
    MPI_Win_attach(win, first.data(), static_cast<MPI_Aint>(first.size() * sizeof(int)));
    MPI_Win_attach(win, second.data(), static_cast<MPI_Aint>(second.size() * sizeof(int)));
    MPI_Aint mine[2];
    MPI_Get_address(first.data(), &mine[0]);
    MPI_Get_address(second.data(), &mine[1]);
    std::vector<MPI_Aint> all(static_cast<std::size_t>(2 * ranks));
    PMPI_Allgather(mine, 2, MPI_AINT, all.data(), 2, MPI_AINT, MPI_COMM_WORLD);
    const int right = (me + 1) % ranks;
    const int left = (me + ranks - 1) % ranks;
    const std::vector<int> data(20000, me + 1);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win);
    MPI_Put(data.data(), 500, MPI_INT, right, all[static_cast<std::size_t>(2 * right)] + 400, 500, MPI_INT,
            win);
    MPI_Put(data.data(), 20000, MPI_INT, right, all[static_cast<std::size_t>(2 * right + 1)], 20000, MPI_INT,
            win);
    MPI_Win_unlock(right, win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win);
    check::that(first[99] == 0 && first[100] == left + 1 && first[599] == left + 1 && first[600] == 0,
                "put into attached memory");
    check::that(second == std::vector<int>(20000, left + 1), "put into more attached memory");
    MPI_Win_unlock(me, win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_detach(win, first.data());
    MPI_Win_detach(win, second.data());
    // Memory that is still attached ends with the window, and may be freed afterwards.
    void* mapped = nullptr;
    MPI_Alloc_mem(1 << 18, MPI_INFO_NULL, &mapped);
    MPI_Win_attach(win, mapped, 1 << 18);
    MPI_Win_free(&win);
    MPI_Free_mem(mapped);
}

// Windows of different sizes and units on a communicator that is freed before them, and attributes.
void test_windows() {
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, ranks > 3 ? me % 2 : 0, -me, &half);
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(half, &rank);
    MPI_Comm_size(half, &size);
    std::vector<char> memory(static_cast<std::size_t>(100 * (rank + 1)), 'x');
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_create(memory.data(), static_cast<MPI_Aint>(memory.size()), rank + 1, MPI_INFO_NULL, half, &win);
    MPI_Comm_free(&half);
    void* base = nullptr;
    int found = 0;
    MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &found);
    check::that(found != 0 && base == memory.data(), "MPI_WIN_BASE");
    MPI_Win_fence(0, win);
    const char mark = static_cast<char>('a' + rank);
    const int to = (rank + 1) % size;
    // Unit to + 1: the 10th of a hundred units.
    MPI_Put(&mark, 1, MPI_CHAR, to, 10, 1, MPI_CHAR, win);
    MPI_Win_fence(0, win);
    const auto at = static_cast<std::size_t>(10 * (rank + 1));
    check::that(memory[at] == static_cast<char>('a' + (rank + size - 1) % size) && memory[at + 1] == 'x' &&
                    memory[at - 1] == 'x',
                "put by units of the target");
    MPI_Win_free(&win);

    // Several windows exist at a time, one of them without bytes.
    WindowMemory<int> one(10, 0);
    MPI_Win a = create(one);
    MPI_Win b = MPI_WIN_NULL;
    MPI_Win_create(nullptr, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &b);
    MPI_Win_fence(0, b);
    MPI_Win_fence(0, a);
    MPI_Put(&me, 1, MPI_INT, (me + 1) % ranks, 9, 1, MPI_INT, a);
    MPI_Put(&me, 0, MPI_INT, (me + 1) % ranks, 0, 0, MPI_INT, b);
    MPI_Win_fence(0, b);
    MPI_Win_fence(0, a);
    check::that(one[9] == (me + ranks - 1) % ranks, "two windows");
    MPI_Win_free(&a);
    MPI_Win_free(&b);
}

namespace {

int flavor_of(MPI_Win win) {
    int* flavor = nullptr;
    int found = 0;
    MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &flavor, &found);
    return found != 0 ? *flavor : -1;
}

}  // namespace

// What a window reports about itself and its memory depends on the call that made it.
void test_flavors() {
    constexpr MPI_Aint bytes = 200000;
    void* base = nullptr;
    void* told = nullptr;
    MPI_Aint* size = nullptr;
    int found = 0;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&base), &win);
    MPI_Win_get_attr(win, MPI_WIN_BASE, static_cast<void*>(&told), &found);
    check::that(found != 0 && told == base && base != nullptr, "the base of an allocated window");
    MPI_Win_get_attr(win, MPI_WIN_SIZE, &size, &found);
    check::that(found != 0 && *size == bytes, "the size of an allocated window");
    check::that(flavor_of(win) == MPI_WIN_FLAVOR_ALLOCATE, "an allocated window's flavor is {}",
                flavor_of(win));
    MPI_Win_free(&win);
    WindowMemory<int> memory(10);
    win = create(memory);
    check::that(flavor_of(win) == MPI_WIN_FLAVOR_CREATE, "a created window's flavor");
    MPI_Win_free(&win);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    check::that(flavor_of(win) == MPI_WIN_FLAVOR_DYNAMIC, "a dynamic window's flavor");
    MPI_Win_free(&win);
}

// A window is freed after its epoch. Requests of its operations have not been waited for, and its memory, its
// group and the types are gone too.
void test_freed_windows() {
    const int right = (me + 1) % ranks;
    const int left = (me + ranks - 1) % ranks;
    constexpr int pairs = 20000;
    for (int round = 0; round < 5; ++round) {
        auto memory = std::make_unique<std::vector<int>>(2 * pairs, -1);
        MPI_Comm comm = MPI_COMM_NULL;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Win win = MPI_WIN_NULL;
        MPI_Win_create(memory->data(), 2 * pairs * 4, 4, MPI_INFO_NULL, comm, &win);
        MPI_Comm_free(&comm);
        MPI_Datatype every_other = MPI_DATATYPE_NULL;
        MPI_Type_vector(pairs, 1, 2, MPI_INT, &every_other);
        MPI_Type_commit(&every_other);
        std::vector<int> out(2 * pairs, me + round), in(2 * pairs, -1);
        MPI_Request requests[2];
        MPI_Win_lock_all(0, win);
        MPI_Rput(out.data(), 1, every_other, right, 0, 1, every_other, win, &requests[0]);
        MPI_Win_flush(right, win);
        MPI_Rget(in.data(), 1, every_other, right, 0, 1, every_other, win, &requests[1]);
        MPI_Type_free(&every_other);
        MPI_Win_unlock_all(win);
        MPI_Barrier(MPI_COMM_WORLD);
        bool good = true;
        for (std::size_t i = 0; i < memory->size(); ++i)
            good = good && (*memory)[i] == (i % 2 == 0 ? left + round : -1);
        MPI_Win_free(&win);
        memory.reset();
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (std::size_t i = 0; i < in.size(); ++i)
            good = good && in[i] == (i % 2 == 0 ? me + round : -1);
        check::that(good, "requests of a window that was freed, round {}", round);
    }
}

namespace {

int handled = 0;
void on_error(MPI_Win*, int*, ...) {
    ++handled;
}

template <typename Call>
void expect_error(const char* what, int wanted, Call call) {
    handled = 0;
    int found = MPI_SUCCESS;
    MPI_Error_class(call(), &found);
    check::that(found == wanted && handled == 1, "{}: class {} instead of {}, handler called {} times", what,
                found, wanted, handled);
}

}  // namespace

void test_errors() {
    WindowMemory<int> memory(100, 0);
    MPI_Win win = create(memory);
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    MPI_Win_create_errhandler(on_error, &handler);
    MPI_Win_set_errhandler(win, handler);
    MPI_Group everybody = MPI_GROUP_NULL;
    MPI_Win_get_group(win, &everybody);
    int value = 1;
    const auto put = [&](int count, MPI_Datatype type, int rank, MPI_Aint disp) {
        return MPI_Put(&value, count, type, rank, disp, count, type, win);
    };
    expect_error("put outside an epoch", MPI_ERR_RMA_SYNC, [&] { return put(1, MPI_INT, 0, 0); });
    expect_error("flush outside an epoch", MPI_ERR_RMA_SYNC, [&] { return MPI_Win_flush(0, win); });
    expect_error("unlock without a lock", MPI_ERR_RMA_SYNC, [&] { return MPI_Win_unlock(0, win); });
    expect_error("complete without a start", MPI_ERR_RMA_SYNC, [&] { return MPI_Win_complete(win); });
    expect_error("wait without a post", MPI_ERR_RMA_SYNC, [&] { return MPI_Win_wait(win); });
    expect_error("a lock of no type", MPI_ERR_LOCKTYPE, [&] { return MPI_Win_lock(12345, 0, 0, win); });
    expect_error("a lock of no rank", MPI_ERR_RANK,
                 [&] { return MPI_Win_lock(MPI_LOCK_SHARED, ranks, 0, win); });
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    expect_error("free with a lock", MPI_ERR_RMA_SYNC, [&] { return MPI_Win_free(&win); });
    int integer = 0;
    float number = 0;
    MPI_Datatype bytes = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(sizeof(int), MPI_BYTE, &bytes);
    MPI_Type_commit(&bytes);
    const auto swap = [&](void* place, MPI_Datatype type) {
        return MPI_Compare_and_swap(place, place, place, type, 0, 0, win);
    };
    expect_error("swap of a derived type", MPI_ERR_TYPE, [&] { return swap(&integer, bytes); });
    expect_error("swap of floating-point numbers", MPI_ERR_TYPE, [&] { return swap(&number, MPI_FLOAT); });
    MPI_Type_free(&bytes);
    MPI_Win_unlock(0, win);
    MPI_Win_post(everybody, 0, win);
    expect_error("free while exposed", MPI_ERR_RMA_SYNC, [&] { return MPI_Win_free(&win); });
    MPI_Win_start(everybody, 0, win);
    expect_error("free while accessing", MPI_ERR_RMA_SYNC, [&] { return MPI_Win_free(&win); });
    MPI_Win_complete(win);
    MPI_Win_wait(win);
    MPI_Win_lock_all(0, win);
    expect_error("lock_all twice", MPI_ERR_RMA_SYNC, [&] { return MPI_Win_lock_all(0, win); });
    expect_error("put to no rank", MPI_ERR_RANK, [&] { return put(1, MPI_INT, ranks, 0); });
    expect_error("put of a negative count", MPI_ERR_COUNT, [&] { return put(-1, MPI_INT, 0, 0); });
    expect_error("put of no type", MPI_ERR_TYPE, [&] { return put(1, MPI_DATATYPE_NULL, 0, 0); });
    expect_error("put at a negative place", MPI_ERR_DISP, [&] { return put(1, MPI_INT, 0, -1); });
    expect_error("put beyond the end", MPI_ERR_RMA_RANGE, [&] { return put(1, MPI_INT, 0, 100); });
    expect_error("an update that is none", MPI_ERR_OP,
                 [&] { return MPI_Accumulate(&value, 1, MPI_FLOAT, 0, 0, 1, MPI_FLOAT, MPI_BAND, win); });
    handled = 0;
    check::that(put(1, MPI_INT, MPI_PROC_NULL, 0) == MPI_SUCCESS && handled == 0, "put to MPI_PROC_NULL");
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    check::that(memory == WindowMemory<int>(100, 0), "something was written all the same");
    MPI_Win_free(&win);
    MPI_Group_free(&everybody);
    MPI_Errhandler_free(&handler);
}

}  // namespace rma_test
