// How a thread waits: at first it spins, then it yields its core, then it sleeps in steps that grow with the
// time waited, so that a late look costs a small part of it and a long wait costs next to no CPU (ranks may
// share a core). A wait for one operation of the device is woken by the device itself. Past the spinning it
// lets the host's MPI progress at every step, as MPI's progress rule asks of a blocking call. One object a
// wait; not shared.
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

    // One step. Sleeps end early when `device`, if there is one, is done; the sleeps are longer then.
    void pause(offpath_request_h device = nullptr);
    // Since the first pause.
    std::uint64_t waited_ns() const;

  private:
    void sleep_for(std::uint64_t nanoseconds);

    int spins_ = 0;
    std::uint64_t started_ns_ = 0;
    int timer_slack_ns_ = -1;  // the thread's own, restored at the end
};

}  // namespace offpath::mpi
