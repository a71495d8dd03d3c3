// Many windows at once, and windows where the host's MPI has almost no communicators left: each that the
// host's MPI could make is made, and works, and the program's error handler hears of nothing but its own
// calls' errors.
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "check.h"

namespace {

int errors_heard = 0;

void on_error(MPI_Comm*, int*, ...) {
    ++errors_heard;
}

struct One {
    int memory = -1;
    MPI_Win win = MPI_WIN_NULL;

    bool make() {
        return MPI_Win_create(&memory, sizeof memory, sizeof memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win) ==
               MPI_SUCCESS;
    }
    // On the device. The puts of MPICH 4.0 itself do not arrive on some machines.
    void use(int value) {
        const int ranks = check::size_of(MPI_COMM_WORLD), rank = check::rank_of(MPI_COMM_WORLD);
        const int mine = value + rank;
        MPI_Win_fence(0, win);
        MPI_Put(&mine, 1, MPI_INT, (rank + 1) % ranks, 0, 1, MPI_INT, win);
        MPI_Win_fence(0, win);
        check::that(memory == value + (rank + ranks - 1) % ranks, "window {} has {}", value, memory);
    }
};

void many_at_once(std::size_t count) {
    std::vector<One> windows(count);
    for (One& each : windows)
        check::that(each.make(), "a window was not made");
    for (std::size_t i = 0; i < std::min<std::size_t>(count, 250); i += 25)
        windows[i].use(static_cast<int>(1000 * i));
    MPI_Win_fence(0, windows.back().win);
    for (One& each : windows)
        MPI_Win_free(&each.win);
    check::that(errors_heard == 0, "{} errors were heard", errors_heard);
}

void with_few_communicators_left() {
    std::vector<MPI_Comm> comms;
    for (MPI_Comm made = MPI_COMM_NULL; MPI_Comm_dup(MPI_COMM_WORLD, &made) == MPI_SUCCESS;)
        comms.push_back(made);
    // The host's MPI needs one for a window, and the device more than are left.
    for (const std::size_t spare : {1, 2, 3, 4}) {
        for (std::size_t i = 0; i < spare; ++i) {
            MPI_Comm_free(&comms.back());
            comms.pop_back();
        }
        errors_heard = 0;
        One one;
        check::that(one.make(), "no window with {} communicators left", spare);
        check::that(errors_heard == 0, "an error was heard with {} communicators left", spare);
        if (one.win != MPI_WIN_NULL) {
            MPI_Win_fence(0, one.win);
            MPI_Win_free(&one.win);
        }
        for (std::size_t i = 0; i < spare; ++i)
            if (MPI_Comm made = MPI_COMM_NULL; MPI_Comm_dup(MPI_COMM_WORLD, &made) == MPI_SUCCESS)
                comms.push_back(made);
    }
    for (MPI_Comm& comm : comms)
        MPI_Comm_free(&comm);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    many_at_once(argc > 1 ? static_cast<std::size_t>(std::atoi(argv[1])) : 700);
    with_few_communicators_left();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&handler);
    return check::finish();
}
