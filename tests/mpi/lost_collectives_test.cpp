// One of several daemons dies, errors are returned, and nothing but calls that do not wait for all ranks
// tells the other ranks. Few collectives fail on each communicator: those that were outstanding, or started
// before their rank could know. All later ones work, on all ranks. Two or more ranks, with two or more
// daemons (several_daemons.sh); the last rank's daemon dies. The first argument is the way of using a
// communicator, from 0 on, that meets the loss first. With `known` as the second one, the last rank has met
// it before, and its next collective meets it at the start.
#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "check.h"
#include "kill_daemon.h"

namespace {

constexpr int ints = 1 << 14;
int rank, ranks, last_rank;

// A started sum. Its result is checked if it succeeds.
struct Sum {
    std::vector<int> mine = std::vector<int>(ints, 0), all = std::vector<int>(ints, 0);
    MPI_Request request = MPI_REQUEST_NULL;
    int value = 0;

    bool start(MPI_Comm comm, int number) {
        set(number);
        return MPI_Iallreduce(mine.data(), all.data(), ints, MPI_INT, MPI_SUM, comm, &request) == MPI_SUCCESS;
    }
    void set(int number) {
        value = number;
        std::fill(mine.begin(), mine.end(), number + rank);
        std::fill(all.begin(), all.end(), -1);
    }
    bool ended(int error) const {
        check::that(
            error != MPI_SUCCESS || all == std::vector<int>(ints, ranks * value + ranks * last_rank / 2),
            "sum {} is wrong", value);
        return error == MPI_SUCCESS;
    }
    bool wait() { return ended(MPI_Wait(&request, MPI_STATUS_IGNORE)); }
};

// One way to use a communicator. `use` makes `calls` collectives, the first one with this number, and returns
// how many failed.
struct Way {
    const char* name;
    int calls;
    std::function<int(MPI_Comm comm, int number)> use;
};

// Only MPI_Test ends this sum.
int tested(MPI_Comm comm, int number) {
    Sum sum;
    if (!sum.start(comm, number)) return 1;
    int error = MPI_SUCCESS;
    for (int done = 0; done == 0 && error == MPI_SUCCESS;)
        error = MPI_Test(&sum.request, &done, MPI_STATUS_IGNORE);
    return sum.ended(error) ? 0 : 1;
}

constexpr int at_once = 6;

// Several sums are outstanding at once and ended in another order, with small ones of the host's between
// them.
int several(MPI_Comm comm, int number) {
    std::vector<Sum> sums(at_once);
    std::vector<int> small(at_once);
    std::vector<MPI_Request> requests(at_once, MPI_REQUEST_NULL);
    std::vector<bool> started(at_once);
    for (int i = 0; i < at_once; ++i) {
        const auto at = static_cast<std::size_t>(i);
        started[at] = sums[at].start(comm, number + i);
        small[at] = rank == 1 ? number + i : -1;
        MPI_Ibcast(&small[at], 1, MPI_INT, 1, comm, &requests[at]);
    }
    int failed = 0;
    for (std::size_t i = at_once; i-- > 0;)
        failed += started[i] && sums[i].wait() ? 0 : 1;
    check::that(MPI_Waitall(at_once, requests.data(), MPI_STATUSES_IGNORE) == MPI_SUCCESS,
                "a small broadcast of the host's failed");
    for (int i = 0; i < at_once; ++i)
        check::that(small[static_cast<std::size_t>(i)] == number + i, "a small broadcast is wrong");
    return failed;
}

// Rank 0 waits, inside the host's MPI, for a message that the last rank sends when it has started the same
// collective.
int with_message(MPI_Comm comm, int number) {
    Sum sum;
    const bool started = sum.start(comm, number);
    int token = number;
    if (rank == last_rank) MPI_Send(&token, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
    if (rank == 0) MPI_Recv(&token, 1, MPI_INT, last_rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return started && sum.wait() ? 0 : 1;
}

// Rank 0 sits in the host's MPI, in a receive or a send, until the last rank's collectives have ended. Some
// of them are held back until rank 0 has answered, which has collectives of its own outstanding.
int beside_host(MPI_Comm comm, int number, bool receives) {
    std::vector<Sum> sums(2);
    std::vector<bool> started(2);
    for (std::size_t i = 0; i < 2; ++i)
        started[i] = sums[i].start(comm, number + static_cast<int>(i));
    int token = number, failed = 0;
    if (rank == 0 && receives) MPI_Recv(&token, 1, MPI_INT, last_rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0 && !receives) MPI_Ssend(&token, 1, MPI_INT, last_rank, 7, MPI_COMM_WORLD);
    for (std::size_t i = 0; i < 2; ++i)
        failed += started[i] && sums[i].wait() ? 0 : 1;
    if (rank == last_rank && receives) MPI_Send(&token, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
    if (rank == last_rank && !receives) MPI_Recv(&token, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return failed;
}
int beside_receive(MPI_Comm comm, int number) {
    return beside_host(comm, number, true);
}
int beside_send(MPI_Comm comm, int number) {
    return beside_host(comm, number, false);
}

// Many small blocking ones of the host's follow the start. A rank that knows of the loss waits a while before
// each of them, unless the others answer in theirs.
int among_small(MPI_Comm comm, int number) {
    using Clock = std::chrono::steady_clock;
    Sum sum;
    const bool started = sum.start(comm, number);
    const auto begin = Clock::now();
    const int count = number <= 200 ? 80 : 1;
    for (int i = 0; i < count; ++i) {
        int one = 1, all = 0;
        check::that(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS && all == ranks,
                    "a small sum of the host's failed");
    }
    const std::chrono::duration<double> took = Clock::now() - begin;
    check::that(took.count() < 25, "{} small sums took {:.1f} s", count, took.count());
    return started && sum.wait() ? 0 : 1;
}

// Rank 0 probes for a message that the last rank sends when its collective has ended.
int probed(MPI_Comm comm, int number) {
    Sum sum;
    const bool started = sum.start(comm, number);
    int token = number, failed = 0;
    if (rank == 0) {
        for (int there = 0; there == 0;)
            MPI_Iprobe(last_rank, 6, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
        MPI_Recv(&token, 1, MPI_INT, last_rank, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    failed = started && sum.wait() ? 0 : 1;
    if (rank == last_rank) MPI_Send(&token, 1, MPI_INT, 0, 6, MPI_COMM_WORLD);
    return failed;
}

// Between a collective of the device and its end come a small blocking one of the host's and a new
// communicator.
int among_others(MPI_Comm comm, int number) {
    Sum sum;
    const bool started = sum.start(comm, number);
    int one = 1, all = 0;
    check::that(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS && all == ranks,
                "a small sum of the host's failed");
    MPI_Comm made;
    MPI_Comm_dup(comm, &made);
    MPI_Comm_free(&made);
    return started && sum.wait() ? 0 : 1;
}

// Only blocking collectives.
int blocking(MPI_Comm comm, int number) {
    Sum sum;
    sum.set(number);
    return sum.ended(MPI_Allreduce(sum.mine.data(), sum.all.data(), ints, MPI_INT, MPI_SUM, comm)) ? 0 : 1;
}

// Only persistent collectives, made before the loss.
class Persistent {
  public:
    explicit Persistent(MPI_Comm comm) {
#if defined(OPEN_MPI)
        MPIX_Allreduce_init(sum_.mine.data(), sum_.all.data(), ints, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL,
                            &request_);
#else
        MPI_Allreduce_init(sum_.mine.data(), sum_.all.data(), ints, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL,
                           &request_);
#endif
    }
    ~Persistent() { MPI_Request_free(&request_); }
    Persistent(const Persistent&) = delete;
    Persistent& operator=(const Persistent&) = delete;

    int run(int number) {
        sum_.set(number);
        if (MPI_Start(&request_) != MPI_SUCCESS) return 1;
        return sum_.ended(MPI_Wait(&request_, MPI_STATUS_IGNORE)) ? 0 : 1;
    }

  private:
    Sum sum_;
    MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    rank = check::rank_of(MPI_COMM_WORLD);
    ranks = check::size_of(MPI_COMM_WORLD);
    last_rank = ranks - 1;
    const bool known = argc > 2 && std::strcmp(argv[2], "known") == 0;
    MPI_Comm of_persistent, first_lost;
    for (MPI_Comm* comm : {&of_persistent, &first_lost})
        MPI_Comm_dup(MPI_COMM_WORLD, comm);
    {
        Persistent persistent(of_persistent);
        std::vector<Way> ways = {
            {"MPI_Test", 1, tested},
            {"several at a time", at_once, several},
            {"beside a message", 1, with_message},
            {"MPI_Iprobe", 1, probed},
            {"among the host's", 1, among_others},
            {"MPI_Allreduce", 1, blocking},
            {"persistent", 1, [&](MPI_Comm, int number) { return persistent.run(number); }},
            {"beside a receive", 2, beside_receive},
            {"beside a send", 2, beside_send},
            {"among small ones", 1, among_small},
        };
        std::rotate(ways.begin(), ways.begin() + (argc > 1 ? std::atoi(argv[1]) : 0), ways.end());
        std::vector<MPI_Comm> comms(ways.size());
        for (MPI_Comm& comm : comms)
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        for (std::size_t i = 0; i < ways.size(); ++i)
            check::that(ways[i].use(comms[i], 1) == 0, "{}: failed while all daemons lived", ways[i].name);
        PMPI_Barrier(MPI_COMM_WORLD);
        if (rank == last_rank) check::kill_daemon();
        std::vector<Sum> early(2);  // the others start theirs at the end
        if (rank == last_rank && known) {
            for (Sum& sum : early) {
                sum.start(first_lost, 1);
                const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
                for (int done = 0; done == 0 && std::chrono::steady_clock::now() < end;)
                    MPI_Test(&sum.request, &done, MPI_STATUS_IGNORE);
            }
        }

        const int rounds = ranks == 2 ? 40 : 12;
        for (std::size_t i = 0; i < ways.size(); ++i) {
            int failed = 0, last = 0;
            for (int round = 1; round <= rounds; ++round) {
                const int now = ways[i].use(comms[i], 100 * round);
                failed += now;
                if (now > 0) last = round;
            }
            fmt::print("rank {}, {}: {} collectives failed, the last in round {}\n", rank, ways[i].name,
                       failed, last);
            // In the round of the loss, the outstanding collectives fail. In the next one, only those can
            // fail that this rank started before the other could tell it.
            check::that(last <= 2 && failed <= 2 * ways[i].calls, "{}: {} failed, the last in round {}",
                        ways[i].name, failed, last);
        }
        for (MPI_Comm& comm : comms)
            MPI_Comm_free(&comm);
        for (Sum& sum : early) {
            if (!known) continue;
            if (rank == last_rank || sum.start(first_lost, 1)) sum.wait();
        }
    }
    for (MPI_Comm* comm : {&of_persistent, &first_lost})
        MPI_Comm_free(comm);
    return check::finish();
}
