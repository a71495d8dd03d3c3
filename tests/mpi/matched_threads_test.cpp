// Several threads take large messages of the other ranks by matched probes, while the main thread sends. All
// of them arrive once, with the right bytes.
#include <mpi.h>

#include <atomic>
#include <thread>
#include <vector>

#include "check.h"

namespace {

constexpr int messages = 200, threads = 4, most = 150000;

char value(int sender, int number, int at) {
    return static_cast<char>(sender * 31 + number * 7 + at / 1000);
}

std::atomic<int> taken{0};
std::atomic<int> wrong{0};

void take(bool blocking) {
    std::vector<char> got(most);
    while (taken.load() < messages) {
        int flag = 0;
        MPI_Message matched = MPI_MESSAGE_NULL;
        MPI_Status status;
        MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &matched, &status);
        if (flag == 0) {
            std::this_thread::yield();
            continue;
        }
        if (blocking) {
            MPI_Mrecv(got.data(), most, MPI_BYTE, &matched, MPI_STATUS_IGNORE);
        } else {
            MPI_Request request = MPI_REQUEST_NULL;
            MPI_Imrecv(got.data(), most, MPI_BYTE, &matched, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        for (int i = 0; i < most; i += 999)
            if (got[static_cast<std::size_t>(i)] != value(status.MPI_SOURCE, status.MPI_TAG, i)) ++wrong;
        ++taken;
    }
}

void exchange(bool blocking) {
    const int rank = check::rank_of(MPI_COMM_WORLD), ranks = check::size_of(MPI_COMM_WORLD);
    taken = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    std::vector<std::thread> takers;
    for (int i = 0; i < threads; ++i)
        takers.emplace_back(take, blocking);
    std::vector<char> sent(most);
    for (int number = 0; number < messages; ++number) {
        for (int i = 0; i < most; ++i)
            sent[static_cast<std::size_t>(i)] = value(rank, number, i);
        MPI_Send(sent.data(), most, MPI_BYTE, (rank + 1) % ranks, number, MPI_COMM_WORLD);
    }
    for (std::thread& taker : takers)
        taker.join();
    check::that(taken == messages, "{} of {} messages", taken.load(), messages);
    check::that(wrong == 0, "{} wrong bytes", wrong.load());
}

}  // namespace

int main(int argc, char** argv) {
    int provided = MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided == MPI_THREAD_MULTIPLE)
        for (const bool blocking : {true, false})
            exchange(blocking);
    return check::finish();
}
