// A program with every kind of call that the profiler tells apart. tests/python/test_advise.py says how
// often.
#include <mpi.h>

#include <ctime>
#include <vector>

static double cpu_seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    constexpr int block = 1000;
    std::vector<char> sent(static_cast<std::size_t>(block * size)), received(sent.size());
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    double mine = rank, sum = 0;
    for (int i = 0; i < 10; ++i) {
        MPI_Request requests[2];
        MPI_Ialltoall(sent.data(), block, MPI_BYTE, received.data(), block, MPI_BYTE, MPI_COMM_WORLD,
                      requests);
        int done = 0;
        while (done == 0)
            MPI_Test(requests, &done, MPI_STATUS_IGNORE);
        for (int j = 0; j < 3; ++j) {
            MPI_Irecv(received.data(), block, MPI_BYTE, before, 3, MPI_COMM_WORLD, &requests[0]);
            MPI_Isend(sent.data(), block, MPI_BYTE, next, 3, MPI_COMM_WORLD, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        }
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, half);
        MPI_Sendrecv(sent.data(), block, MPI_BYTE, next, 5, received.data(), block, MPI_BYTE, before, 5,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 5; ++i) {
        MPI_Request request;
        MPI_Message message;
        MPI_Issend(sent.data(), block, MPI_BYTE, next, 7, MPI_COMM_WORLD, &request);
        MPI_Mprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(received.data(), block, MPI_BYTE, &message, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Recv(received.data(), block, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    // A loop whose times the profiler does not always read, and a computation after it.
    for (int i = 0; i < 20'000; ++i) {
        MPI_Send(sent.data(), 8, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
        MPI_Ssend(sent.data(), i == 15'000 ? 16 : 8, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
    }
    // The profiler leaves out the time in which another program had the core.
    for (const double end = cpu_seconds() + 0.05; cpu_seconds() < end;) {
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_free(&half);
    MPI_Finalize();
    return 0;
}
