// Many communicators at once: as many as the host's MPI has, each with pairs of ranks that decide against the
// device. Their messages do not mix, in whatever order the ranks start them.
#include <algorithm>
#include <cstdlib>
#include <span>

#include "check.h"

namespace {

constexpr int block = 40;  // ints; below the switch-over

// An outstanding MPI_Ialltoallv of one rank. The values name the sender and the communicator.
struct Pending {
    std::vector<int> send, recv, counts, places;
    MPI_Request request = MPI_REQUEST_NULL;
};

int value(int from, int to, int seed) {
    return (seed * 64 + from) * 64 + to;
}

void post(Pending& pending, MPI_Comm comm, int seed) {
    const int size = check::size_of(comm);
    const int rank = check::rank_of(comm);
    pending.counts.assign(static_cast<std::size_t>(size), block);
    pending.recv.assign(static_cast<std::size_t>(size * block), -1);
    for (int to = 0; to < size; ++to) {
        pending.places.push_back(to * block);
        pending.send.insert(pending.send.end(), block, value(rank, to, seed));
    }
    MPI_Ialltoallv(pending.send.data(), pending.counts.data(), pending.places.data(), MPI_INT,
                   pending.recv.data(), pending.counts.data(), pending.places.data(), MPI_INT, comm,
                   &pending.request);
}

void finish(Pending& pending, MPI_Comm comm, int seed) {
    MPI_Wait(&pending.request, MPI_STATUS_IGNORE);
    bool good = true;
    for (int i = 0; i < static_cast<int>(pending.recv.size()); ++i)
        good =
            good && pending.recv[static_cast<std::size_t>(i)] == value(i / block, check::rank_of(comm), seed);
    check::that(good, "data of communicator {}", seed);
}

// Odd ranks start them in reverse order, which MPI allows on different communicators.
void use_at_once(std::span<const MPI_Comm> comms) {
    const auto count = static_cast<int>(comms.size());
    std::vector<Pending> pending(comms.size());
    for (int step = 0; step < count; ++step) {
        const int i = check::rank_of(MPI_COMM_WORLD) % 2 == 0 ? step : count - 1 - step;
        post(pending[static_cast<std::size_t>(i)], comms[static_cast<std::size_t>(i)], i);
    }
    for (int i = 0; i < count; ++i)
        finish(pending[static_cast<std::size_t>(i)], comms[static_cast<std::size_t>(i)], i);
}

void free_all(std::vector<MPI_Comm>& comms) {
    for (MPI_Comm& comm : comms)
        MPI_Comm_free(&comm);
    comms.clear();
}

void as_many_as_the_host_has(int wanted) {
    std::vector<MPI_Comm> comms;
    int result = MPI_SUCCESS;
    for (int i = 0; i < wanted && result == MPI_SUCCESS; ++i) {
        MPI_Comm made = MPI_COMM_NULL;
        result = MPI_Comm_dup(MPI_COMM_WORLD, &made);
        if (result == MPI_SUCCESS) comms.push_back(made);
    }
    check::that(static_cast<int>(comms.size()) == wanted, "{} of {} communicators", comms.size(), wanted);
    const std::size_t used = std::min<std::size_t>(comms.size(), 30);
    use_at_once(std::span(comms).last(used));
    free_all(comms);
}

// Ranks in other orders and parts of the world are made into communicators and freed, again and again.
void of_every_shape() {
    const int rank = check::rank_of(MPI_COMM_WORLD);
    for (int round = 0; round < 20; ++round) {
        std::vector<MPI_Comm> comms(3);
        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[0]);
        MPI_Comm_split(MPI_COMM_WORLD, (rank + round) % 2, rank, &comms[1]);
        MPI_Comm_split(MPI_COMM_WORLD, 0, (rank + round) % 5, &comms[2]);
        use_at_once(comms);
        // A communicator that is freed with an operation pending keeps its messages apart from those of the
        // next one.
        Pending pending;
        MPI_Comm freed = MPI_COMM_NULL;
        MPI_Comm_dup(comms[0], &freed);
        post(pending, freed, 777);
        MPI_Comm_free(&freed);
        MPI_Comm_dup(comms[2], &freed);
        use_at_once({&freed, 1});
        finish(pending, comms[0], 777);
        MPI_Comm_free(&freed);
        free_all(comms);
    }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    as_many_as_the_host_has(argc > 1 ? std::atoi(argv[1]) : 1500);
    of_every_shape();
    return check::finish();
}
