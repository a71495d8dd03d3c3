// MPICH up to 4.1 over TCP hangs if a rank still progresses when another one is in MPI_Finalize already. The
// last rank does so, outside of MPI_Finalize and after the front end's last collective call. With "lost", a
// device dies first. Without it, the job has no daemons (several_daemons.sh).
#include <dlfcn.h>
#include <mpi.h>

#include <chrono>
#include <string_view>

#include "check.h"
#include "kill_daemon.h"

namespace {

bool is_last = false, ends = false;

void progress_for_long() {
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(300)) {
        int flag = 0;
        PMPI_Iprobe(0, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
}

}  // namespace

// The front end frees a communicator after its last collective call.
extern "C" __attribute__((visibility("default"))) int PMPI_Comm_free(MPI_Comm* comm) {
    const auto theirs = reinterpret_cast<int (*)(MPI_Comm*)>(dlsym(RTLD_NEXT, "PMPI_Comm_free"));
    const int result = theirs(comm);
    if (is_last && ends) progress_for_long();
    return result;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int rank = check::rank_of(MPI_COMM_WORLD), ranks = check::size_of(MPI_COMM_WORLD);
    is_last = rank == ranks - 1;
    const bool lost = argc > 1 && std::string_view(argv[1]) == "lost";
    if (lost && rank == 0) check::kill_daemon();
    for (int offset = 1; offset < ranks; ++offset) {  // connects all ranks
        int in = -1;
        PMPI_Sendrecv(&rank, 1, MPI_INT, (rank + offset) % ranks, 1, &in, 1, MPI_INT,
                      (rank - offset + ranks) % ranks, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    const int failures = check::total_failures();
    if (!lost && is_last) progress_for_long();
    ends = true;
    MPI_Finalize();
    return failures == 0 ? 0 : 1;
}
