#include "backoff.h"

#include <mpi.h>
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>

#include "base/clock.h"
#include "base/pause.h"
#include "departure.h"
#include "outstanding_counts.h"
#include "runtime.h"

namespace offpath::mpi {
namespace {

constexpr int spins = 64;
constexpr int pauses_a_spin = 4;
constexpr std::uint64_t yield_until_ns = 50'000;
constexpr std::uint64_t shortest_sleep_ns = 20'000;
constexpr std::uint64_t longest_sleep_ns = 500'000;
constexpr std::uint64_t share_of_wait = 16;  // a sleep takes at most 1/16 of the time waited so far
// If the device wakes this thread, the steps only let the host's MPI progress.
constexpr std::uint64_t share_until_host_progress = 2;
constexpr std::uint64_t longest_until_host_progress_ns = 1'000'000;
constexpr unsigned long precise_slack_ns = 1'000;

void let_host_progress() {
    if (answer_letters()) return;
    int flag = 0;
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, runtime().service, &flag, MPI_STATUS_IGNORE);
}

}  // namespace

Backoff::~Backoff() {
    if (timer_slack_ns_ >= 0) prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(timer_slack_ns_), 0, 0, 0);
}

void Backoff::pause(offpath_request_h device) {
    if (started_ns_ == 0) started_ns_ = now_ns();
    if (spins_ < spins) {
        ++spins_;
        for (int i = 0; i < pauses_a_spin; ++i)
            pause_cpu();
        return;
    }
    let_host_progress();
    const std::uint64_t waited = waited_ns();
    if (waited < yield_until_ns || outstanding.moved_by_host != 0) {
        // The rank copies a part of its own block if its device has not come to it.
        if (device != nullptr) offpath_request_wait_for(device, 0);
        sched_yield();
    } else if (device != nullptr) {
        offpath_request_wait_for(device, std::clamp(waited / share_until_host_progress, shortest_sleep_ns,
                                                    longest_until_host_progress_ns));
    } else {
        sleep_for(std::clamp(waited / share_of_wait, shortest_sleep_ns, longest_sleep_ns));
    }
}

std::uint64_t Backoff::waited_ns() const {
    return started_ns_ == 0 ? 0 : now_ns() - started_ns_;
}

void Backoff::sleep_for(std::uint64_t nanoseconds) {
    if (timer_slack_ns_ < 0) {
        timer_slack_ns_ = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
        prctl(PR_SET_TIMERSLACK, precise_slack_ns, 0, 0, 0);
    }
    const timespec time{0, static_cast<long>(nanoseconds)};
    nanosleep(&time, nullptr);
}

}  // namespace offpath::mpi
