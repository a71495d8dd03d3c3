// A device is lost while a rank's thread still makes a communicator that the other rank uses already. The
// other thread of that rank receives what the other rank tells it about the loss, and must not take the new
// communicator for a freed one. One collective fails on each rank; all later ones work. Two ranks, each with
// a daemon of its own (several_daemons.sh).
#include <dlfcn.h>
#include <mpi.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "check.h"
#include "kill_daemon.h"

namespace {

// The front end makes a communicator with a PMPI_Allgather and a PMPI_Allreduce. The thread waits here when
// the second one returns.
std::atomic<bool> holds_threads{false}, thread_is_held{false};

constexpr int ints = 1 << 14;

struct Sum {
    std::vector<int> mine = std::vector<int>(ints, 1), all = std::vector<int>(ints, 0);
    MPI_Request request = MPI_REQUEST_NULL;

    bool start(MPI_Comm comm) {
        return MPI_Iallreduce(mine.data(), all.data(), ints, MPI_INT, MPI_SUM, comm, &request) == MPI_SUCCESS;
    }
    bool wait() {
        if (MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
        check::that(all == std::vector<int>(ints, 2), "a sum is wrong");
        return true;
    }
};

bool sum(MPI_Comm comm) {
    Sum sum;
    return sum.start(comm) && sum.wait();
}

// Returns how many of two sums failed.
int use_at_once() {
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    check::kill_daemon();
    int failed = sum(made) ? 0 : 1;
    Sum second;
    const bool started = second.start(made);  // tells rank 1 of the loss
    int token = 1;
    MPI_Send(&token, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
    failed += started && second.wait() ? 0 : 1;
    // Rank 1 would wait for ever in a collective that this rank believes to be on the device.
    if (failed != 1) {
        check::fail(fmt::format("{} of 2 sums failed", failed));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int i = 0; i < 8; ++i)
        failed += sum(made) ? 0 : 1;
    MPI_Comm_free(&made);
    return failed;
}

int make_slowly() {
    MPI_Comm made = MPI_COMM_NULL;
    holds_threads = true;
    std::jthread maker([&] { MPI_Comm_dup(MPI_COMM_WORLD, &made); });
    thread_is_held.wait(false);
    int token = 0;
    for (int there = 0; there == 0;)
        MPI_Iprobe(0, 5, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    MPI_Recv(&token, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    // Rank 0 sent its notice of the loss before the token. Each of these calls looks for such notices.
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
    for (int there = 0; std::chrono::steady_clock::now() < end; std::this_thread::yield())
        MPI_Iprobe(0, 6, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    holds_threads = false;
    holds_threads.notify_all();
    maker.join();
    int failed = 0;
    for (int i = 0; i < 10; ++i)
        failed += sum(made) ? 0 : 1;
    MPI_Comm_free(&made);
    return failed;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int PMPI_Allreduce(const void* send, void* recv, int count,
                                                                     MPI_Datatype type, MPI_Op op,
                                                                     MPI_Comm comm) {
    static const auto hosts = reinterpret_cast<decltype(&PMPI_Allreduce)>(dlsym(RTLD_NEXT, "PMPI_Allreduce"));
    const int result = hosts(send, recv, count, type, op, comm);
    if (holds_threads) {
        thread_is_held = true;
        thread_is_held.notify_all();
        holds_threads.wait(true);
    }
    return result;
}

int main(int argc, char** argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    check::that(provided == MPI_THREAD_MULTIPLE, "this MPI library does not offer MPI_THREAD_MULTIPLE");
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int rank = check::rank_of(MPI_COMM_WORLD);
    const int failed = rank == 0 ? use_at_once() : make_slowly();
    check::that(failed == 1, "{} sums failed, 1 was expected", failed);
    check::that(rank == 0 || thread_is_held, "no thread was held");
    return check::finish();
}
