// One-sided communication: every kind of synchronisation, datatypes on both sides, and a busy target;
// updates, requests and windows are in files of their own (rma_test.h). The program computes the expected
// results itself, so it also shows whether the host's MPI and the device agree (variant `host`).
#include "rma_test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "types.h"

namespace rma_test {
namespace {

// Encloses the operations of an access epoch to `target`, with one of MPI's kinds of synchronisation.
enum class Sync { fence, pscw, lock, exclusive, lock_all };
constexpr Sync all_syncs[] = {Sync::fence, Sync::pscw, Sync::lock, Sync::exclusive, Sync::lock_all};

struct Epoch {
    Epoch(Sync kind, MPI_Win window, int target, int source) : sync(kind), win(window), to(target) {
        if (sync == Sync::fence) MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
        if (sync == Sync::pscw) {
            MPI_Group all = MPI_GROUP_NULL;
            MPI_Group accessors = MPI_GROUP_NULL;
            MPI_Group targets = MPI_GROUP_NULL;
            MPI_Win_get_group(win, &all);
            MPI_Group_incl(all, 1, &source, &accessors);
            MPI_Group_incl(all, 1, &to, &targets);
            MPI_Win_post(accessors, 0, win);
            MPI_Win_start(targets, 0, win);
            MPI_Group_free(&all);
            MPI_Group_free(&accessors);
            MPI_Group_free(&targets);
        }
        if (sync == Sync::lock) MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win);
        if (sync == Sync::exclusive) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win);
        if (sync == Sync::lock_all) MPI_Win_lock_all(0, win);
    }
    // Afterwards all ranks' operations are visible.
    void end() {
        switch (sync) {
            case Sync::fence:
                MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
                return;
            case Sync::pscw: {
                MPI_Win_complete(win);
                int over = 0;
                while (over == 0)
                    MPI_Win_test(win, &over);
                return;
            }
            case Sync::lock:
            case Sync::exclusive:
                MPI_Win_unlock(to, win);
                break;
            case Sync::lock_all:
                MPI_Win_flush(to, win);
                MPI_Win_flush_local_all(win);
                MPI_Win_unlock_all(win);
                break;
        }
        MPI_Barrier(MPI_COMM_WORLD);
        // Local loads follow a remote epoch.
        MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win);
        MPI_Win_sync(win);
        MPI_Win_unlock(me, win);
    }
    Sync sync;
    MPI_Win win;
    int to;
};

// Every rank puts to its right neighbour, with every datatype at either end, and gets the data back.
void test_types(Sync sync) {
    std::vector<check::Type> types = check::make_types();
    const int right = (me + 1) % ranks;
    const int left = (me + ranks - 1) % ranks;
    constexpr std::size_t room = 60;
    WindowMemory<int> memory(room);
    const std::vector<int> source = check::pattern(room, 5);
    MPI_Win win = create(memory);
    const auto pair = [&](const check::Type& from, const check::Type& to) {
        const int from_count = 18 / from.ints_an_element;
        const int to_count = 18 / to.ints_an_element;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, me, 0, win);
        const std::vector<int> before = check::untouched(room);
        memory.assign(before.begin(), before.end());
        MPI_Win_unlock(me, win);
        MPI_Barrier(MPI_COMM_WORLD);
        Epoch epoch(sync, win, right, left);
        MPI_Put(source.data(), from_count, from.type, right, 2, to_count, to.type, win);
        epoch.end();
        // MPI_Sendrecv gives the expected data, moved by the host's MPI.
        std::vector<int> expected = check::untouched(room);
        PMPI_Sendrecv(source.data(), from_count, from.type, right, 3, expected.data() + 2, to_count, to.type,
                      left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check::that(std::equal(memory.begin(), memory.end(), expected.begin()), "put of {} into {}, sync {}",
                    from.name, to.name, static_cast<int>(sync));
        std::vector<int> back = check::untouched(room);
        Epoch again(sync, win, right, left);
        MPI_Get(back.data(), from_count, from.type, right, 2, to_count, to.type, win);
        again.end();
        std::vector<int> wanted = check::untouched(room);
        PMPI_Sendrecv(source.data(), from_count, from.type, me, 4, wanted.data(), from_count, from.type, me,
                      4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check::that(back == wanted, "get of {} from {}, sync {}", from.name, to.name, static_cast<int>(sync));
    };
    for (const check::Type& from : types) {
        for (const check::Type& to : types) {
            // With fences, all pairs of types are tested. Otherwise both ends have the same type.
            if (sync == Sync::fence || from.name == to.name) pair(from, to);
        }
    }
    MPI_Win_free(&win);
    check::free_types(types);
}

// Large strided puts and updates. Types are freed while operations are pending.
void test_freed_types() {
    const int right = (me + 1) % ranks;
    const int left = (me + ranks - 1) % ranks;
    constexpr int rows = 3000, columns = 40;
    WindowMemory<int> memory(rows * columns, 1);
    std::vector<int> source(rows * columns, 100 + me);
    MPI_Win win = create(memory, 1);
    MPI_Win_fence(0, win);
    MPI_Datatype column = MPI_DATATYPE_NULL;
    MPI_Type_vector(rows, 3, columns, MPI_INT, &column);
    MPI_Type_commit(&column);
    MPI_Put(source.data(), 1, column, right, 4, 1, column, win);
    MPI_Accumulate(source.data(), 1, column, right, 40, 1, column, MPI_SUM, win);
    MPI_Type_free(&column);
    MPI_Win_fence(0, win);
    bool good = true;
    for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < columns; ++j) {
            const int expected = j >= 1 && j < 4 ? 100 + left : j >= 10 && j < 13 ? 101 + left : 1;
            good = good && memory[static_cast<std::size_t>(i * columns + j)] == expected;
        }
    }
    check::that(good, "strided puts and updates with a freed type");
    MPI_Win_free(&win);
}

// These types are defined only by their precision.
void test_chosen_types() {
    const int right = (me + 1) % ranks;
    MPI_Datatype integer = MPI_DATATYPE_NULL;
    int bytes = 0;
    MPI_Type_create_f90_integer(9, &integer);
    MPI_Type_size(integer, &bytes);
    if (bytes != sizeof(int)) return;
    WindowMemory<int> memory(100, 5);
    std::vector<int> source(100, me);
    MPI_Win win = create(memory);
    MPI_Win_fence(0, win);
    MPI_Accumulate(source.data(), 100, integer, right, 0, 100, integer, MPI_SUM, win);
    MPI_Win_fence(0, win);
    check::that(memory[0] == 5 + (me + ranks - 1) % ranks && memory[99] == memory[0],
                "a sum of chosen integers is {}", memory[0]);
    MPI_Win_free(&win);
}

// A file in which each rank leaves one byte, so that ranks can wait for each other without MPI.
class Visits {
  public:
    explicit Visits(int root) {
        const char* folder = std::getenv("TMPDIR");
        char name[256] = {};
        std::snprintf(name, sizeof name, "%s/visits-XXXXXX", folder != nullptr ? folder : "/tmp");
        if (me == root) file_ = mkstemp(name);
        PMPI_Bcast(name, sizeof name, MPI_CHAR, root, MPI_COMM_WORLD);
        if (me != root) file_ = open(name, O_WRONLY | O_APPEND | O_CLOEXEC);
        check::that(file_ >= 0, "{} cannot be opened", name);
        PMPI_Barrier(MPI_COMM_WORLD);
        if (me == root) unlink(name);
    }
    Visits(const Visits&) = delete;
    Visits& operator=(const Visits&) = delete;
    ~Visits() { close(file_); }
    void come() const { check::that(write(file_, "x", 1) == 1, "a visit"); }
    // Whether all ranks but the root come in time.
    bool wait_for_all() const {
        struct stat about {};
        for (int i = 0; i < 30'000 && about.st_size < ranks - 1; ++i) {
            usleep(1000);
            fstat(file_, &about);
        }
        return about.st_size >= ranks - 1;
    }

  private:
    int file_ = -1;
};

// The target computes and calls no MPI while the others put, get and draw. It goes on when they are done.
void test_busy_target() {
    WindowMemory<int> memory(1 << 18, 1);
    MPI_Win win = create(memory);
    const int target = ranks - 1;
    const Visits visits(target);
    MPI_Barrier(MPI_COMM_WORLD);
    if (me != target) {
        std::vector<int> got(1 << 18, 0);
        const int one = 1;
        int ticket = -1;
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
        MPI_Get(got.data(), 1 << 18, MPI_INT, target, 0, 1 << 18, MPI_INT, win);
        MPI_Fetch_and_op(&one, &ticket, MPI_INT, target, 0, MPI_SUM, win);
        MPI_Win_unlock(target, win);
        check::that(got[1000] == 1 && ticket >= 1 && ticket <= ranks, "what a busy target has");
        visits.come();
    } else {
        check::that(visits.wait_for_all(), "a busy target kept its origins waiting");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
}

}  // namespace
}  // namespace rma_test

int main(int argc, char** argv) {
    using namespace rma_test;
    MPI_Init(&argc, &argv);
    me = check::rank_of(MPI_COMM_WORLD);
    ranks = check::size_of(MPI_COMM_WORLD);
    by_host = argc > 1 && std::strcmp(argv[1], "host") == 0;
    for (Sync sync : all_syncs)
        test_types(sync);
    test_freed_types();
    test_updates();
    test_atomics();
    test_requests();
    test_dynamic();
    test_windows();
    test_flavors();
    test_freed_windows();
    if (!by_host) test_packed_requests();
    test_chosen_types();
    // The host's MPI may handle these cases differently, and a busy target makes it wait.
    if (!by_host && ranks > 1) {
        test_pairs();
        test_errors();
        test_failed_request();
        if (ranks <= 3) test_busy_target();
    }
    return check::finish();
}
