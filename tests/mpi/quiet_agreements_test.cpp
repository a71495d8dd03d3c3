// Agreements that go on from one blocking collective to the next, on communicators that measure nothing: data
// are right while rank 0 switches offloading, communicators are freed in the middle of agreements and in
// different orders, and messages of the front end fail. With the argument "unknown", a rank cannot know what
// the others have agreed on: its call ends with an error, of which the communicator's handler hears.
#include <dlfcn.h>
#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "check.h"

namespace {

bool fails = false;  // the next message of an agreement, on this rank
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
        // A call that ends with an error took no part.
        if (MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm) != MPI_SUCCESS)
            PMPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
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

// Copies are freed in another order on each rank, some of them in the middle of an agreement.
void free_in_different_orders(MPI_Comm parent) {
    std::vector<MPI_Comm> copies(8);
    for (std::size_t i = 0; i < copies.size(); ++i) {
        MPI_Comm_dup(parent, &copies[i]);
        meet(copies[i], 7 + static_cast<int>(i));
    }
    for (std::size_t i = 0; i < copies.size(); ++i)
        MPI_Comm_free(&copies[(i + 3 * static_cast<std::size_t>(check::rank_of(parent))) % copies.size()]);
}

// Rank 0 gets the words of the others, and the last rank the result. The first agreement begins in call 8 and
// ends in call 10. A rank that does not know the result ends this and the next call with an error.
void check_failure(MPI_Comm parent, int rank) {
    const bool here = check::rank_of(parent) == rank;
    const int heard = here && rank > 0 ? 2 : 0;
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Comm_dup(parent, &copy);
    fails = here;
    meet(copy, rank > 0 ? 11 : 40);
    MPI_Comm_free(&copy);
    check::that(failed == (here ? 1 : 0), "rank {}: {} messages failed", rank, failed);
    check::that(handled == heard, "rank {}: the handler heard of it {} times", rank, handled);
    fails = false;
    failed = handled = 0;
}

}  // namespace

// Agreements are messages of these elements.
extern "C" __attribute__((visibility("default"))) int PMPI_Irecv(void* buffer, int count, MPI_Datatype type,
                                                                 int source, int tag, MPI_Comm comm,
                                                                 MPI_Request* request) {
    static const auto original = reinterpret_cast<decltype(&PMPI_Irecv)>(dlsym(RTLD_NEXT, "PMPI_Irecv"));
    if (type != MPI_UINT64_T) return original(buffer, count, type, source, tag, comm, request);
    ++begun;
    if (!std::exchange(fails, false)) {
        outstanding.insert(request);
        return original(buffer, count, type, source, tag, comm, request);
    }
    // The rank takes part, but nothing of the message reaches the caller.
    std::vector<std::uint64_t> unseen(static_cast<std::size_t>(count));
    PMPI_Recv(unseen.data(), count, type, source, tag, comm, MPI_STATUS_IGNORE);
    return fail_on(comm);
}

extern "C" __attribute__((visibility("default"))) int PMPI_Wait(MPI_Request* request, MPI_Status* status) {
    static const auto original = reinterpret_cast<decltype(&PMPI_Wait)>(dlsym(RTLD_NEXT, "PMPI_Wait"));
    outstanding.erase(request);
    return original(request, status);
}

extern "C" __attribute__((visibility("default"))) int PMPI_Test(MPI_Request* request, int* flag,
                                                                MPI_Status* status) {
    static const auto original = reinterpret_cast<decltype(&PMPI_Test)>(dlsym(RTLD_NEXT, "PMPI_Test"));
    const int error = original(request, flag, status);
    if (*flag != 0) outstanding.erase(request);
    return error;
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
    free_in_different_orders(parent);
    check_failure(parent, argc > 1 ? check::size_of(parent) - 1 : 0);
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
