// Ranks that call no blocking collective on a communicator agree all the same, so that its collectives may
// move to the other engine and back while several are in flight. All data are right, whatever is tried.
//   posted_agreements_test          steps of a pipeline, with few and with many operations in flight, on
//   halves and
//                                   on the world. Halves are freed while their
//                                   ranks may be agreeing.
//   posted_agreements_test ahead    rank 0 posts more than ranks agreed on, before the others may go on:
//   nobody may
//                                   wait for them for ever
#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>

#include "check.h"

namespace {

class Exchange {
  public:
    // Blocks of `ints` ints for each rank, and one more for each rank after the first if the call knows no
    // sizes.
    Exchange(MPI_Comm comm, int ints, int number, bool varies) : comm_(comm), number_(number) {
        const int size = check::size_of(comm), me = check::rank_of(comm);
        for (int rank = 0; rank < size; ++rank) {
            const int extra = varies ? me + rank : 0;
            counts_.push_back(ints + extra);
            offsets_.push_back(rank == 0 ? 0 : offsets_.back() + counts_[static_cast<std::size_t>(rank) - 1]);
        }
        const int all = offsets_.back() + counts_.back();
        send_.resize(static_cast<std::size_t>(all));
        received_.assign(static_cast<std::size_t>(all), -1);
        for (int rank = 0; rank < size; ++rank)
            std::fill_n(&send_[at(rank)], counts_[static_cast<std::size_t>(rank)], value(me, rank));
        if (varies)
            MPI_Ialltoallv(send_.data(), counts_.data(), offsets_.data(), MPI_INT, received_.data(),
                           counts_.data(), offsets_.data(), MPI_INT, comm, &request_);
        else
            MPI_Ialltoall(send_.data(), ints, MPI_INT, received_.data(), ints, MPI_INT, comm, &request_);
    }
    ~Exchange() {
        MPI_Wait(&request_, MPI_STATUS_IGNORE);
        const int me = check::rank_of(comm_);
        for (int rank = 0; rank < check::size_of(comm_); ++rank) {
            const int* const block = &received_[at(rank)];
            const int count = counts_[static_cast<std::size_t>(rank)];
            check::that(std::count(block, block + count, value(rank, me)) == count,
                        "block of rank {} in exchange {}", rank, number_);
        }
    }
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

  private:
    std::size_t at(int rank) const {
        return static_cast<std::size_t>(offsets_[static_cast<std::size_t>(rank)]);
    }
    int value(int from, int to) const { return number_ * 10'000 + from * 100 + to; }

    MPI_Comm comm_;
    int number_;
    std::vector<int> counts_, offsets_, send_, received_;
    MPI_Request request_ = MPI_REQUEST_NULL;
};

void steps(MPI_Comm comm, int count, std::size_t in_flight, bool varies) {
    std::deque<std::unique_ptr<Exchange>> pipeline;
    for (int i = 0; i < count; ++i) {
        if (pipeline.size() == in_flight) pipeline.pop_front();
        pipeline.push_back(std::make_unique<Exchange>(comm, varies ? 17'000 : 6'000, i, varies));
    }
}

void pipelines() {
    MPI_Comm half = MPI_COMM_NULL;
    for (int turn = 0; turn < 2; ++turn) {
        const int rank = check::rank_of(MPI_COMM_WORLD);
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
        steps(half, 120, 1, turn == 0);
        steps(half, 120, 5, turn == 0);
        // More than before, and the ranks are not in step.
        steps(half, 60, 30, turn == 0);
        if (turn == 1) MPI_Barrier(half);
        steps(half, 37, 2, turn == 0);
        MPI_Comm_free(&half);
    }
    steps(MPI_COMM_WORLD, 150, 3, true);
    steps(MPI_COMM_WORLD, 150, 3, false);
}

void run_ahead(int round) {
    constexpr int many = 90;
    const int rank = check::rank_of(MPI_COMM_WORLD), size = check::size_of(MPI_COMM_WORLD);
    std::vector<std::unique_ptr<Exchange>> all;
    const auto post = [&] {
        for (int i = 0; i < many; ++i)
            all.push_back(std::make_unique<Exchange>(MPI_COMM_WORLD, 2'000, 1'000 * round + i, false));
    };
    int word = round;
    if (rank == 0) {
        post();
        for (int to = 1; to < size; ++to)
            MPI_Send(&word, 1, MPI_INT, to, 1, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&word, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        post();
    }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    if (argc > 1 && std::strcmp(argv[1], "ahead") == 0) {
        steps(MPI_COMM_WORLD, 40, 2, true);
        run_ahead(0);
        MPI_Barrier(MPI_COMM_WORLD);
        run_ahead(1);
        for (int i = 0; i < 20; ++i)
            MPI_Barrier(MPI_COMM_WORLD);
        steps(MPI_COMM_WORLD, 40, 2, false);
    } else {
        pipelines();
    }
    return check::finish();
}
