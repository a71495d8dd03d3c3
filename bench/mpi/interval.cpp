#include "interval.h"

#include <mpi.h>
#include <sched.h>
#include <time.h>

namespace mpi_bench {

namespace {

// All ranks know the start well before it comes, and a link's bucket has filled again.
constexpr double kLeadSeconds = 0.001;

double machine_seconds() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

Interval::Interval(bool shared_clock) : shared_clock_(shared_clock) {
    if (shared_clock_) meeting_.emplace();
}

void Interval::start() {
    MPI_Barrier(MPI_COMM_WORLD);
    if (!shared_clock_) {
        start_ = MPI_Wtime();
        return;
    }
    start_ = meeting_->latest(machine_seconds() + kLeadSeconds);
    while (machine_seconds() < start_)
        sched_yield();
}

double Interval::elapsed() const {
    return (shared_clock_ ? machine_seconds() : MPI_Wtime()) - start_;
}

}  // namespace mpi_bench
