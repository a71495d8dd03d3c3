// Choices that change while the program runs. Whatever is tried, measured and switched, the data are right on
// all ranks, which requires that all decide alike.
//   refinement_test          default settings: sizes around the switch-over, with and without computing
//                            between post and wait
//   refinement_test switch   rank 0 switches offloading off and on with MPI_Pcontrol
// Ranks wait for each other in blocking collectives of the communicators, on some of them only rarely;
// otherwise they run ahead of each other.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

#include "check.h"

namespace {

constexpr int rounds = 12;
constexpr std::size_t largest = 40'000;  // ints for each pair

void compute_for(std::chrono::microseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
    }
}

class Exchange {
  public:
    Exchange(MPI_Comm comm, std::size_t ints, int seed) : comm_(comm), ints_(ints), seed_(seed) {
        const auto ranks = static_cast<std::size_t>(check::size_of(comm));
        send_.resize(ints * ranks);
        received_.assign(ints * ranks, -1);
        const int me = check::rank_of(comm);
        for (std::size_t to = 0; to < ranks; ++to)
            std::fill_n(&send_[to * ints], ints, value(me, static_cast<int>(to)));
        MPI_Ialltoall(send_.data(), static_cast<int>(ints), MPI_INT, received_.data(), static_cast<int>(ints),
                      MPI_INT, comm, &request);
    }
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    void verify(const char* where) const {
        const int me = check::rank_of(comm_);
        for (int from = 0; from < check::size_of(comm_); ++from) {
            const int* block = &received_[static_cast<std::size_t>(from) * ints_];
            check::that(
                std::count(block, block + ints_, value(from, me)) == static_cast<std::ptrdiff_t>(ints_),
                "{}: {} ints from {} in round {}", where, ints_, from, seed_);
        }
    }

    MPI_Request request = MPI_REQUEST_NULL;

  private:
    int value(int from, int to) const { return seed_ * 10'000 + from * 100 + to; }

    MPI_Comm comm_;
    std::size_t ints_;
    int seed_;
    std::vector<int> send_, received_;
};

// Several operations of different sizes are in flight, and are waited for or tested.
void exchange(MPI_Comm comm, int round, const char* where) {
    Exchange small(comm, 500, 3 * round), middle(comm, 6'000, 3 * round + 1),
        large(comm, largest, 3 * round + 2);
    compute_for(std::chrono::microseconds(200 + 50 * check::rank_of(comm)));
    MPI_Wait(&small.request, MPI_STATUS_IGNORE);
    for (int done = 0; done == 0;)
        MPI_Test(&middle.request, &done, MPI_STATUS_IGNORE);
    MPI_Request rest[] = {MPI_REQUEST_NULL, large.request};
    MPI_Waitall(2, rest, MPI_STATUSES_IGNORE);
    small.verify(where);
    middle.verify(where);
    large.verify(where);
}

// One rank posts many operations that the others reach later. Between them only messages order the ranks.
void run_ahead(MPI_Comm comm, int round) {
    const int rank = check::rank_of(comm), size = check::size_of(comm);
    std::vector<int> data(20'000, rank == 0 ? round : -1);
    MPI_Request requests[8];
    const auto post = [&] {
        for (MPI_Request& request : requests)
            MPI_Ibcast(data.data(), static_cast<int>(data.size()), MPI_INT, 0, comm, &request);
    };
    int word = round;
    if (rank == 0) {
        post();
        for (int to = 1; to < size; ++to)
            PMPI_Send(&word, 1, MPI_INT, to, 1, comm);
    } else {
        PMPI_Recv(&word, 1, MPI_INT, 0, 1, comm, MPI_STATUS_IGNORE);
        post();
    }
    MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
    check::that(std::count(data.begin(), data.end(), round) == static_cast<std::ptrdiff_t>(data.size()),
                "ibcast in round {}", round);
}

// Calls a blocking collective that no rank leaves before all have entered.
void meet(MPI_Comm comm, int which) {
    const int size = check::size_of(comm);
    int one = 1, sum = 0;
    std::vector<int> all(static_cast<std::size_t>(size));
    if (which % 3 == 0) MPI_Barrier(comm);
    if (which % 3 == 1) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    if (which % 3 == 2) MPI_Allgather(&one, 1, MPI_INT, all.data(), 1, MPI_INT, comm);
    check::that(which % 3 != 1 || sum == size, "allreduce gives {}", sum);
    check::that(which % 3 != 2 || std::count(all.begin(), all.end(), 1) == size, "allgather");
}

// The program waits for a while, computes for a while, and so on. All ranks do so, or one of them.
void phases(MPI_Comm comm) {
    constexpr int calls = 50;
    constexpr std::size_t ints = 80'000;
    const int rank = check::rank_of(comm), size = check::size_of(comm);
    for (int phase = 0; phase < 6; ++phase) {
        const bool computes = phase % 2 == 1 && (phase != 3 || rank == 0);
        for (int i = 0; i < calls; ++i) {
            const std::vector<int> send(ints, i + rank);
            std::vector<int> sum(ints, -1);
            MPI_Request request = MPI_REQUEST_NULL;
            MPI_Iallreduce(send.data(), sum.data(), static_cast<int>(ints), MPI_INT, MPI_SUM, comm, &request);
            if (computes) compute_for(std::chrono::microseconds(300));
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            check::that(std::count(sum.begin(), sum.end(), size * i + size * (size - 1) / 2) ==
                            static_cast<std::ptrdiff_t>(ints),
                        "iallreduce {} of phase {}", i, phase);
            if (phase < 4 && i % 3 == 0) MPI_Barrier(comm);
        }
    }
}

void all_rounds(bool switches) {
    const int rank = check::rank_of(MPI_COMM_WORLD);
    MPI_Comm dup = MPI_COMM_NULL, half = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    for (int round = 0; round < rounds; ++round) {
        if (switches && rank == 0 && round % 3 == 1) MPI_Pcontrol(0);
        if (switches && rank == 0 && round % 3 == 2) MPI_Pcontrol(1);
        for (int turn = 0; turn < 3; ++turn) {
            exchange(MPI_COMM_WORLD, 3 * round + turn, "world");
            // In odd rounds the halves have no agreement of their own. They learn of switches through the
            // world.
            exchange(half, 3 * round + turn, "half");
            if (round % 2 == 0) MPI_Barrier(half);
        }
        run_ahead(dup, round);
        for (int i = 0; i < 9; ++i)
            meet(i % 2 == 0 ? MPI_COMM_WORLD : dup, i);
        if (round % 4 == 3) {
            MPI_Comm_free(&half);
            MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
        }
    }
    if (!switches) phases(dup);
    MPI_Comm_free(&half);
    MPI_Comm_free(&dup);
}

// Some ranks post on the halves before the world meets, others only afterwards.
void meet_in_between() {
    const int rank = check::rank_of(MPI_COMM_WORLD);
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    const bool early = check::rank_of(half) == 0;
    for (int round = 0; round < rounds; ++round) {
        if (rank == 0) MPI_Pcontrol(round % 2);
        std::vector<std::unique_ptr<Exchange>> posted;
        const auto post = [&] {
            for (int i = 0; i < 5; ++i)
                posted.push_back(std::make_unique<Exchange>(half, 20'000, 100 * round + i));
        };
        if (early) post();
        for (int i = 0; i < 40; ++i)
            MPI_Barrier(MPI_COMM_WORLD);
        if (!early) post();
        for (auto& each : posted) {
            MPI_Wait(&each->request, MPI_STATUS_IGNORE);
            each->verify("in between");
        }
    }
    MPI_Comm_free(&half);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const bool switches = argc > 1 && std::strcmp(argv[1], "switch") == 0;
    all_rounds(switches);
    if (switches) meet_in_between();
    return check::finish();
}
