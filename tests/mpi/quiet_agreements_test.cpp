// Agreements that go on from one blocking collective to the next, on communicators that measure nothing: data
// are right while rank 0 switches offloading, communicators are freed in the middle of agreements, and
// operations of the front end fail. With the argument "unknown", a rank cannot know whether the others have
// agreed, and ends the job.
#include <dlfcn.h>
#include <mpi.h>

#include <chrono>
#include <set>
#include <string_view>
#include <thread>
#include <vector>

#include "check.h"

namespace {

enum class Fails { nothing, everywhere, here } fails = Fails::nothing;
int passing = 0;  // so many operations are good before one fails
int begun = 0, failed = 0, handled = 0;
int exchanges_of_host = 0;
std::set<MPI_Request*> outstanding;

void count_error(MPI_Comm*, int*, ...) {
    ++handled;
}

// Does what an MPI library does with an error.
int fail_on(MPI_Comm comm) {
    ++failed;
    PMPI_Comm_call_errhandler(comm, MPI_ERR_INTERN);
    return MPI_ERR_INTERN;
}

void exchange(MPI_Comm comm, int round) {
    constexpr int block = 2000;
    const int rank = check::rank_of(comm), size = check::size_of(comm);
    const std::vector<int> sent(static_cast<std::size_t>(size * block), 100 * round + rank);
    std::vector<int> received(sent.size(), -1);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ialltoall(sent.data(), block, MPI_INT, received.data(), block, MPI_INT, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < size * block; ++i)
        if (received[static_cast<std::size_t>(i)] != 100 * round + i / block)
            return check::fail(fmt::format("wrong data in round {}", round));
}

// One rank is late in every third call.
void meet(MPI_Comm comm, int calls) {
    for (int i = 0; i < calls; ++i) {
        if (i % 3 == 0 && check::rank_of(comm) == i % check::size_of(comm))
            std::this_thread::sleep_for(std::chrono::microseconds(300));
        int one = 1, sum = 0;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
        check::that(sum == check::size_of(comm), "a sum of {}", sum);
    }
}

void switching() {
    MPI_Comm half = MPI_COMM_NULL;
    const int rank = check::rank_of(MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    for (int round = 0; round < 12; ++round) {
        if (rank == 0) MPI_Pcontrol(round % 2);
        exchange(half, round);
        meet(MPI_COMM_WORLD, 60);
        exchanges_of_host = 0;
        exchange(MPI_COMM_WORLD, round);
        check::that(exchanges_of_host == 1 - round % 2, "round {}: {} exchanges of the host's", round,
                    exchanges_of_host);
        exchange(half, round);
        meet(half, 20);
    }
    MPI_Comm_free(&half);
}

// Frees a copy of `parent` after so many calls.
void meet_on_copy(MPI_Comm parent, int calls) {
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Comm_dup(parent, &copy);
    meet(copy, calls);
    exchange(copy, calls);
    MPI_Comm_free(&copy);
}

void check_failure(const char* what) {
    check::that(failed > 0 || fails == Fails::nothing, "{}: nothing failed", what);
    check::that(handled == 0, "{}: the handler heard of it {} times", what, handled);
    fails = Fails::nothing;
    failed = 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int PMPI_Iallreduce(const void* send, void* recv, int count,
                                                                      MPI_Datatype type, MPI_Op op,
                                                                      MPI_Comm comm, MPI_Request* request) {
    static const auto original =
        reinterpret_cast<decltype(&PMPI_Iallreduce)>(dlsym(RTLD_NEXT, "PMPI_Iallreduce"));
    ++begun;
    const bool good = fails == Fails::nothing || passing-- > 0 || failed > 0;
    if (good) {
        outstanding.insert(request);
        return original(send, recv, count, type, op, comm, request);
    }
    if (fails == Fails::here) {
        // The rank takes part, but nothing of the result reaches the caller. The others are in this call too.
        std::vector<char> unseen(static_cast<std::size_t>(count) * sizeof(std::uint64_t));
        original(send, unseen.data(), count, type, op, comm, request);
        PMPI_Wait(request, MPI_STATUS_IGNORE);
    }
    return fail_on(comm);
}

extern "C" __attribute__((visibility("default"))) int PMPI_Wait(MPI_Request* request, MPI_Status* status) {
    static const auto original = reinterpret_cast<decltype(&PMPI_Wait)>(dlsym(RTLD_NEXT, "PMPI_Wait"));
    outstanding.erase(request);
    return original(request, status);
}

extern "C" __attribute__((visibility("default"))) int PMPI_Ialltoall(const void* send, int send_count,
                                                                     MPI_Datatype send_type, void* recv,
                                                                     int recv_count, MPI_Datatype recv_type,
                                                                     MPI_Comm comm, MPI_Request* request) {
    static const auto original =
        reinterpret_cast<decltype(&PMPI_Ialltoall)>(dlsym(RTLD_NEXT, "PMPI_Ialltoall"));
    ++exchanges_of_host;
    return original(send, send_count, send_type, recv, recv_count, recv_type, comm, request);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm parent = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &parent);
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    MPI_Comm_create_errhandler(count_error, &handler);
    PMPI_Comm_set_errhandler(parent, handler);
    switching();
    check::that(begun > 0, "no agreement went on from call to call");
    for (int calls = 0; calls < 40; ++calls)
        meet_on_copy(parent, calls);
    fails = Fails::everywhere;
    meet_on_copy(parent, 40);
    check_failure("everywhere");
    for (const int rank : {0, check::size_of(parent) - 1}) {
        fails = check::rank_of(parent) == rank ? Fails::here : Fails::nothing;
        passing = 0;
        meet_on_copy(parent, 40);
        check_failure("on one rank");
    }
    if (argc > 1 && std::string_view(argv[1]) == "unknown") {
        fails = check::rank_of(parent) == 0 ? Fails::here : Fails::nothing;
        passing = 1;
        meet_on_copy(parent, 40);
        check::fail("the job goes on");
    }
    PMPI_Errhandler_free(&handler);
    MPI_Comm_free(&parent);
    // Communicators that are not freed, in all states of an agreement.
    for (int calls = 6; calls < 14; ++calls) {
        MPI_Comm left = MPI_COMM_NULL;
        MPI_Comm_dup(MPI_COMM_WORLD, &left);
        meet(left, calls);
    }
    check::that(!outstanding.empty(), "no agreement goes on at the end");
    const int result = check::finish();
    return outstanding.empty() ? result : 1;
}
