// A daemon dies while persistent collectives are outstanding on some ranks and not yet started on others.
// Every rank starts them in its own order, as MPI allows, also relative to another collective of their
// communicator. All rounds end with right results, the one of the loss included. Two or more ranks
// (several_daemons.sh).
#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "forms.h"
#include "kill_daemon.h"

#if !defined(OFFPATH_TEST_HAS_INIT)
int main() {
    std::puts("skipped: this MPI has no persistent collectives");
    return 77;
}
#else

#define INIT OFFPATH_TEST_INIT

namespace {

constexpr int block = 3000;  // ints
int rank, ranks;

int value(int which, int serial, int from, int to, int i) {
    return which * 10'000'019 + serial * 1'000'003 + from * 1009 + to * 31 + i;
}

// The host's messages carry the small blocks between ranks other than the first one. All wait for that one.
int count_of(int from, int to) {
    return from == to || from * to == 0 ? block - from * to % 7 : 10;
}

struct Persistent {
    Persistent(int number, bool is_sum, bool is_unequal) : which(number), sums(is_sum), unequal(is_unequal) {
        for (int peer = 0; peer < ranks; ++peer) {
            counts.push_back(count_of(rank, peer));
            places.push_back(peer * block);
        }
        fill(0);
        const MPI_Comm comm = MPI_COMM_WORLD;
        if (sums) {
            INIT(Allreduce)
            (send.data(), recv.data(), ranks * block, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request);
        } else if (unequal) {
            INIT(Alltoallv)
            (send.data(), counts.data(), places.data(), MPI_INT, recv.data(), counts.data(), places.data(),
             MPI_INT, comm, MPI_INFO_NULL, &request);
        } else {
            INIT(Alltoall)
            (send.data(), block, MPI_INT, recv.data(), block, MPI_INT, comm, MPI_INFO_NULL, &request);
        }
    }
    Persistent(const Persistent&) = delete;
    Persistent& operator=(const Persistent&) = delete;
    ~Persistent() { MPI_Request_free(&request); }

    void fill(int serial) {
        send.resize(static_cast<std::size_t>(ranks) * block);
        recv.assign(send.size(), -1);
        for (int to = 0; to < ranks; ++to)
            for (int i = 0; i < block; ++i)
                send[static_cast<std::size_t>(to * block + i)] = value(which, serial, rank, to, i);
    }
    int expected(int serial, int from, int i) const {
        if (!sums) return !unequal || i < count_of(from, rank) ? value(which, serial, from, rank, i) : -1;
        int sum = 0;
        for (int each = 0; each < ranks; ++each)
            sum += value(which, serial, each, from, i);
        return sum;
    }
    void verify(int serial) const {
        for (int from = 0; from < ranks; ++from)
            for (int i = 0; i < block; ++i) {
                const int got = recv[static_cast<std::size_t>(from * block + i)];
                if (got == expected(serial, from, i)) continue;
                return check::that(false, "round {}, collective {}: {} of block {} is {}", serial, which, i,
                                   from, got);
            }
    }

    const int which;
    const bool sums, unequal;
    std::vector<int> counts, places, send, recv;
    MPI_Request request = MPI_REQUEST_NULL;
};

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    rank = check::rank_of(MPI_COMM_WORLD);
    ranks = check::size_of(MPI_COMM_WORLD);
    {
        Persistent a(1, false, false), b(2, false, false), c(3, true, false), d(4, false, true),
            e(5, true, false);
        std::vector<Persistent*> all = {&a, &b, &c, &d, &e};
        std::vector<int> mine(block, rank), sum(block);
        // The place where this rank starts a collective that is not persistent.
        const std::size_t between = static_cast<std::size_t>(rank) % all.size();
        MPI_Request request = MPI_REQUEST_NULL;
        constexpr int round_of_loss = 3;
        for (int serial = 1; serial <= 8; ++serial) {
            const bool lost = serial == round_of_loss;
            for (Persistent* one : all)
                one->fill(serial);
            std::vector<Persistent*> order = all;
            std::rotate(order.begin(), order.begin() + (rank + serial) % static_cast<int>(all.size()),
                        order.end());
            if (rank % 2 != 0) std::reverse(order.begin(), order.end());
            const auto start = [&] {
                for (std::size_t i = 0; i < order.size(); ++i) {
                    if (i == between)
                        MPI_Iallreduce(mine.data(), sum.data(), block, MPI_INT, MPI_MAX, MPI_COMM_WORLD,
                                       &request);
                    // The last two at once.
                    MPI_Request last[2] = {order[i]->request, order.back()->request};
                    const bool startall = i + 2 == order.size() && between != i + 1;
                    check::that(
                        (startall ? MPI_Startall(2, last) : MPI_Start(&order[i]->request)) == MPI_SUCCESS,
                        "round {}: a start failed", serial);
                    if (startall) break;
                }
            };
            PMPI_Barrier(MPI_COMM_WORLD);
            if (!lost || rank != 0) start();
            if (lost) {
                PMPI_Barrier(MPI_COMM_WORLD);
                // Daemons that have never answered each other's questions are not given up.
                std::this_thread::sleep_for(std::chrono::milliseconds(300));
                if (rank == 0) check::kill_daemon();
                PMPI_Barrier(MPI_COMM_WORLD);
                if (rank == 0) start();
            }
            // In yet another order.
            for (std::size_t i = 0; i < all.size(); ++i)
                check::that(MPI_Wait(&all[(i + static_cast<std::size_t>(rank)) % all.size()]->request,
                                     MPI_STATUS_IGNORE) == MPI_SUCCESS,
                            "round {}: a wait failed", serial);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            for (const Persistent* one : all)
                one->verify(serial);
            check::that(sum == std::vector<int>(block, ranks - 1), "round {}: the largest rank is wrong",
                        serial);
        }
    }
    return check::finish();
}
#endif
