#include "interval.h"

#include <mpi.h>
#include <sched.h>
#include <time.h>

namespace mpi_bench {

namespace {

// This is enough for all ranks to leave the reduction that agrees on the start, even if they share one core.
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
    start_ = machine_seconds() + kLeadSeconds;
    MPI_Allreduce(MPI_IN_PLACE, &start_, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    while (machine_seconds() < start_)
        sched_yield();
}

double Interval::elapsed() const {
    return (shared_clock_ ? machine_seconds() : MPI_Wtime()) - start_;
}

void Interval::posted() {
    if (meeting_) meeting_->wait_for_all();
}

}  // namespace mpi_bench
