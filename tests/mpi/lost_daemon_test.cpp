// The daemon dies with sums in place outstanding, whose operands it has perhaps overwritten. Run with
// "return", every rank gets an error code within 10 s and the program continues; with "fatal", MPI's default
// error handler ends the job (lost_daemon.sh checks how).
#include <chrono>
#include <string_view>

#include "check.h"
#include "kill_daemon.h"

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const bool errors_return = argc > 1 && std::string_view(argv[1]) == "return";
    if (errors_return) PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const auto ranks = static_cast<std::size_t>(check::size_of(MPI_COMM_WORLD));
    const int count = 1 << 18;
    std::vector<int> sums(static_cast<std::size_t>(count));
    MPI_Request request = MPI_REQUEST_NULL;
    const auto post = [&] {
        return MPI_Iallreduce(MPI_IN_PLACE, sums.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    };

    // First all ranks start one. Then rank 0 alone does, so its operation cannot end. Then the others do,
    // without a daemon.
    post();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    const int rank = check::rank_of(MPI_COMM_WORLD);
    int result = MPI_SUCCESS;
    if (rank == 0) result = post();
    if (rank == 0) check::kill_daemon();
    const auto start = std::chrono::steady_clock::now();
    PMPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0) result = post();
    if (result == MPI_SUCCESS) result = MPI_Wait(&request, MPI_STATUS_IGNORE);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    check::that(result != MPI_SUCCESS, "an operation succeeded without its daemon");
    check::that(took.count() < 40, "the loss was noticed after {:.1f} s only", took.count());

    // The host's MPI still works.
    int sum = 1;
    PMPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check::that(sum == static_cast<int>(ranks), "the host's MPI gave {}", sum);
    return check::finish();
}
