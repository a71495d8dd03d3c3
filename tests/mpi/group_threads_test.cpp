// MPI_THREAD_MULTIPLE: several threads make communicators of the same ranks at the same time, in the ways
// that MPI allows: MPI_Comm_create_group with different tags, or from different communicators.
#include <array>
#include <thread>

#include "check.h"

namespace {

constexpr int threads = 4;
constexpr int rounds = 10;

void use_and_free(MPI_Comm& comm, int seed) {
    const auto size = static_cast<std::size_t>(check::size_of(comm));
    const int rank = check::rank_of(comm);
    constexpr int count = 30;
    std::vector<int> send(size * count), recv(size * count, -1), counts(size, count), places(size);
    for (std::size_t to = 0; to < size; ++to) {
        places[to] = static_cast<int>(to) * count;
        for (int i = 0; i < count; ++i)
            send[to * count + static_cast<std::size_t>(i)] = seed + rank * 100 + static_cast<int>(to);
    }
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ialltoallv(send.data(), counts.data(), places.data(), MPI_INT, recv.data(), counts.data(),
                   places.data(), MPI_INT, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    bool good = true;
    for (std::size_t i = 0; i < recv.size(); ++i)
        good = good && recv[i] == seed + static_cast<int>(i / count) * 100 + rank;
    check::that(good, "data of a thread's communicator, {}", seed);
    MPI_Comm_free(&comm);
}

void work(MPI_Group everybody, MPI_Comm own, int thread) {
    for (int round = 0; round < rounds; ++round) {
        MPI_Comm made = MPI_COMM_NULL;
        if (round >= 8) {
            MPI_Comm_dup(own, &made);
        } else {
            MPI_Comm_create_group(MPI_COMM_WORLD, everybody, thread, &made);
        }
        use_and_free(made, thread * 100'000 + round * 1000);
    }
}

}  // namespace

int main(int argc, char** argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided < MPI_THREAD_MULTIPLE) {
        std::puts("skipped: this MPI has no MPI_THREAD_MULTIPLE");
        MPI_Finalize();
        return 77;
    }
    MPI_Group everybody = MPI_GROUP_NULL;
    std::array<MPI_Comm, threads> own{};
    PMPI_Comm_group(MPI_COMM_WORLD, &everybody);
    for (MPI_Comm& comm : own)
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    {
        std::vector<std::jthread> workers;
        for (int i = 0; i < threads; ++i)
            workers.emplace_back(work, everybody, own[static_cast<std::size_t>(i)], i);
    }
    for (MPI_Comm& comm : own)
        MPI_Comm_free(&comm);
    PMPI_Group_free(&everybody);
    return check::finish();
}
