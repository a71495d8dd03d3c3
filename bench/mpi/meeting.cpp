#include "meeting.h"

#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <random>
#include <system_error>

namespace mpi_bench {

namespace {

using Name = std::array<char, 64>;

Name agree_on_name() {
    Name name{};
    std::snprintf(name.data(), name.size(), "/offpath-bench-%d-%08x", static_cast<int>(getpid()),
                  std::random_device{}());
    MPI_Bcast(name.data(), static_cast<int>(name.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
    return name;
}

int open_everywhere(const Name& name, off_t bytes) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int file = -1, error = 0;
    const auto open = [&](int flags) {
        file = shm_open(name.data(), flags, S_IRUSR | S_IWUSR);
        if (file < 0 || ftruncate(file, bytes) != 0) error = errno;
    };
    if (rank == 0) open(O_RDWR | O_CREAT | O_EXCL);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0) open(O_RDWR);
    MPI_Allreduce(MPI_IN_PLACE, &error, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) shm_unlink(name.data());
    if (error != 0) {
        if (file >= 0) close(file);
        throw std::system_error(
            error, std::generic_category(),
            "--shared-clock: the ranks cannot share memory; it is for ranks of one machine");
    }
    return file;
}

}  // namespace

Meeting::Meeting() {
    int ranks = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    ranks_ = static_cast<std::uint64_t>(ranks);
    const int file = open_everywhere(agree_on_name(), sizeof(Shared));
    void* shared = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    const int error = errno;
    close(file);
    if (shared == MAP_FAILED) throw std::system_error(error, std::generic_category(), "mmap");
    shared_ = static_cast<Shared*>(shared);  // the pages of a new file are zeros
    static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
                  std::atomic<double>::is_always_lock_free);
}

Meeting::~Meeting() {
    munmap(shared_, sizeof(Shared));
}

void Meeting::wait_for_all() {
    expected_ += ranks_;
    shared_->arrivals.fetch_add(1, std::memory_order_acq_rel);
    while (shared_->arrivals.load(std::memory_order_acquire) < expected_)
        sched_yield();
}

double Meeting::latest(double instant) {
    std::atomic<double>& slot = shared_->latest[calls_++ % 2];
    double known = slot.load(std::memory_order_relaxed);
    while (known < instant && !slot.compare_exchange_weak(known, instant, std::memory_order_acq_rel)) {
    }
    wait_for_all();
    return slot.load(std::memory_order_acquire);
}

}  // namespace mpi_bench
