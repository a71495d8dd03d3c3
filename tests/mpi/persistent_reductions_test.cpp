// Persistent reductions whose starts come after their ranks have left a lost device. They have right results,
// also while a rank is in a blocking call that waits for another rank's result; and their memory does not
// grow with the ranks. Three or more ranks (several_daemons.sh).
#include <sys/resource.h>

#include <numeric>
#include <vector>

#include "forms.h"
#include "kill_daemon.h"

#if !defined(OFFPATH_TEST_HAS_INIT)
int main() {
    std::puts("skipped: this MPI has no persistent collectives");
    return 77;
}
#else

namespace {

constexpr int elements = 2 << 20;
constexpr std::size_t operand_bytes = elements * sizeof(int);
int rank, ranks;
std::vector<int> send(elements), recv(elements);

int value(int of, int round, int i) {
    return of * 1009 + round * 31 + i % 10'007;
}

void fill(std::vector<int>& operand, int round) {
    for (int i = 0; i < elements; ++i)
        operand[static_cast<std::size_t>(i)] = value(rank, round, i);
}

// The sum over the ranks from 0 to `last`.
void verify(const std::vector<int>& sums, int round, int last, const char* what) {
    for (int i = 0; i < elements; ++i) {
        int expected = 0;
        for (int of = 0; of <= last; ++of)
            expected += value(of, round, i);
        const int got = sums[static_cast<std::size_t>(i)];
        if (got != expected) return check::that(false, "{}, round {}: element {} is {}", what, round, i, got);
    }
}

std::size_t peak_bytes() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return static_cast<std::size_t>(used.ru_maxrss) * 1024;
}

void start_and_wait(MPI_Request& request, const char* what) {
    check::that(MPI_Start(&request) == MPI_SUCCESS && MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS,
                "{} failed", what);
}

// The last rank's result must not wait for a second call of rank 0. In the first round the ranks agree to
// leave the device, for which each of them must answer.
void with_rank_0_in_a_blocking_call(MPI_Request& request, int round, const char* what) {
    int word = 0;
    check::that(MPI_Start(&request) == MPI_SUCCESS, "{}: the start failed", what);
    if (rank == 99) PMPI_Recv(&word, 1, MPI_INT, ranks - 1, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check::that(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS, "{}: the wait failed", what);
    if (rank == ranks - 1 && round > 1) PMPI_Send(&word, 1, MPI_INT, 0, round, MPI_COMM_WORLD);
}

// What one communicator's root has not received does not hold up another communicator.
void with_two_communicators(MPI_Request& one, MPI_Request& other, int round) {
    const int tag = 100 + round;
    int word = 0;
    check::that(MPI_Start(&one) == MPI_SUCCESS && MPI_Start(&other) == MPI_SUCCESS, "a start failed");
    if (rank == 0 && round > 1)
        PMPI_Recv(&word, 1, MPI_INT, ranks - 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check::that(MPI_Wait(&one, MPI_STATUS_IGNORE) == MPI_SUCCESS, "a wait failed");
    check::that(MPI_Wait(&other, MPI_STATUS_IGNORE) == MPI_SUCCESS, "a wait failed");
    if (rank == ranks - 1 && round > 1) PMPI_Send(&word, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    rank = check::rank_of(MPI_COMM_WORLD);
    ranks = check::size_of(MPI_COMM_WORLD);
    const MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Request all = MPI_REQUEST_NULL, rooted = MPI_REQUEST_NULL, before = MPI_REQUEST_NULL;
    OFFPATH_TEST_INIT(Allreduce)
    (send.data(), recv.data(), elements, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &all);
    OFFPATH_TEST_INIT(Reduce)
    (send.data(), recv.data(), elements, MPI_INT, MPI_SUM, 0, comm, MPI_INFO_NULL, &rooted);
    OFFPATH_TEST_INIT(Scan)
    (send.data(), recv.data(), elements, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &before);
    // The second persistent operation of its communicator, as `rooted` is of the world.
    MPI_Comm again = MPI_COMM_NULL;
    MPI_Request unused = MPI_REQUEST_NULL, elsewhere = MPI_REQUEST_NULL;
    std::vector<int> sums(elements);
    MPI_Comm_dup(comm, &again);
    OFFPATH_TEST_INIT(Allreduce)
    (send.data(), sums.data(), elements, MPI_INT, MPI_SUM, again, MPI_INFO_NULL, &unused);
    OFFPATH_TEST_INIT(Reduce)
    (send.data(), sums.data(), elements, MPI_INT, MPI_SUM, 1, again, MPI_INFO_NULL, &elsewhere);
    fill(send, 0);
    start_and_wait(all, "the start before the loss");
    verify(recv, 0, ranks - 1, "all");
    PMPI_Barrier(comm);
    if (rank == 0) check::kill_daemon();
    PMPI_Barrier(comm);
    std::size_t peak = 0;
    for (int round = 1; round <= 4; ++round) {
        fill(send, round);
        with_rank_0_in_a_blocking_call(all, round, "all");
        verify(recv, round, ranks - 1, "all");
        with_rank_0_in_a_blocking_call(rooted, round, "rooted");
        if (rank == 0) verify(recv, round, ranks - 1, "rooted");
        with_rank_0_in_a_blocking_call(before, round, "before");
        verify(recv, round, rank, "before");
        with_two_communicators(rooted, elsewhere, round);
        if (rank == 0) verify(recv, round, ranks - 1, "rooted, beside another communicator");
        if (rank == 1) verify(sums, round, ranks - 1, "elsewhere");
        // The first round leads away from the device, and the host's MPI takes its buffers.
        if (round == 1) peak = peak_bytes();
    }
    // Each of the four may still have a copy of its operand.
    const std::size_t more = peak_bytes() - peak;
    check::that(more < 4 * operand_bytes, "{} bytes more for operands of {}", more, operand_bytes);
    for (MPI_Request* request : {&all, &rooted, &before, &unused, &elsewhere})
        MPI_Request_free(request);
    MPI_Comm_free(&again);
    return check::finish();
}
#endif
