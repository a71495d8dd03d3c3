// Several threads of each rank send and receive at once on one communicator: each thread with its own tags,
// and all with one tag, whose messages differ by their contents.
#include <cstring>
#include <thread>

#include "check.h"

namespace {

constexpr int threads = 3, rounds = 25, shared_tag = 99;
constexpr int sizes[] = {16, 61, 100, 4096, 30000};

struct Message {
    int thread, round, size;
    char bytes[30000];
};

void fill(Message& message, int thread, int round, int size, int rank) {
    message.thread = thread;
    message.round = round;
    message.size = size;
    std::memset(message.bytes, thread * 50 + round + rank * 7, sizeof message.bytes);
}

bool good(const Message& message, int bytes, int rank) {
    if (message.size != bytes) return false;
    for (int i = 12; i < bytes; ++i) {
        if (message.bytes[i - 12] != static_cast<char>(message.thread * 50 + message.round + rank * 7))
            return false;
    }
    return true;
}

void work(int thread, int rank, int next, int previous) {
    for (int round = 0; round < rounds; ++round) {
        const int size = sizes[(thread + round) % 5];
        Message out, own, shared;
        fill(out, thread, round, size, rank);
        MPI_Request requests[3];
        MPI_Status statuses[3];
        MPI_Irecv(&own, sizeof own, MPI_BYTE, previous, thread, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&shared, sizeof shared, MPI_BYTE, round % 2 != 0 ? MPI_ANY_SOURCE : previous, shared_tag,
                  MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(&out, size, MPI_BYTE, next, thread, MPI_COMM_WORLD, &requests[2]);
        MPI_Send(&out, size, MPI_BYTE, next, shared_tag, MPI_COMM_WORLD);
        if (round % 3 == 0) {
            int flag = 0;
            while (flag == 0)
                MPI_Testall(3, requests, &flag, statuses);
        } else {
            MPI_Waitall(3, requests, statuses);
        }
        int bytes = 0;
        PMPI_Get_count(&statuses[0], MPI_BYTE, &bytes);
        check::that(bytes == size && own.thread == thread && own.round == round && good(own, bytes, previous),
                    "thread {}, round {}: {} bytes from thread {}, round {}", thread, round, bytes,
                    own.thread, own.round);
        PMPI_Get_count(&statuses[1], MPI_BYTE, &bytes);
        check::that(statuses[1].MPI_SOURCE == previous && good(shared, bytes, previous),
                    "thread {}, round {}: {} bytes with the shared tag", thread, round, bytes);
    }
}

}  // namespace

int main(int argc, char** argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE) {
        std::puts("skipped: this MPI has no MPI_THREAD_MULTIPLE");
        MPI_Finalize();
        return 77;
    }
    const int rank = check::rank_of(MPI_COMM_WORLD);
    const int size = check::size_of(MPI_COMM_WORLD);
    std::vector<std::thread> all;
    for (int thread = 0; thread < threads; ++thread)
        all.emplace_back(work, thread, rank, (rank + 1) % size, (rank + size - 1) % size);
    for (std::thread& thread : all)
        thread.join();
    return check::finish();
}
