// Backoff: how a thread waits. It spins at first, then yields its core, then sleeps in steps that grow with
// the time waited. A late wake-up therefore adds only a small share, and a long wait uses almost no CPU,
// because ranks may share a core. The device itself wakes a wait for one of its operations. After the
// spinning, every step progresses the host's MPI, as MPI's progress rule requires of a blocking call. Use one
// object per wait.
#pragma once

#include <offpath/request.h>

#include <cstdint>

namespace offpath::mpi {

class Backoff {
  public:
    Backoff() = default;
    ~Backoff();
    Backoff(const Backoff&) = delete;
    Backoff& operator=(const Backoff&) = delete;

    // Makes one step. If `device` is given, its completion ends a sleep early, so sleeps are longer.
    void pause(offpath_request_h device = nullptr);
    // Time since the first pause.
    std::uint64_t waited_ns() const;

  private:
    void sleep_for(std::uint64_t nanoseconds);

    int spins_ = 0;
    std::uint64_t started_ns_ = 0;
    int timer_slack_ns_ = -1;  // the thread's own, restored at the end
};

}  // namespace offpath::mpi
