// The lock of point-to-point. Message numbers and calls of the host's MPI must happen in one order, so the
// lock is held across both. It is a mutex only with MPI_THREAD_MULTIPLE. No code waits for another rank under
// it, except that settle_early waits for messages that have been sent. Error handlers that MPI calls under it
// run when it is released, before the MPI call returns.
#pragma once

#include <mutex>
#include <utility>

#include "runtime/error_handlers.h"
#include "runtime/runtime.h"

namespace offpath::mpi::p2p {

inline std::mutex& the_mutex() {
    static std::mutex mutex;
    return mutex;
}

class Guard {
  public:
    Guard() = default;
    ~Guard() { unlock(); }
    Guard(Guard&& other) noexcept : held_(std::exchange(other.held_, false)) {}
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    Guard& operator=(Guard&&) = delete;

    void lock() {
        if (runtime().threads) the_mutex().lock();
        take();
    }
    bool try_lock() {
        if (runtime().threads && !the_mutex().try_lock()) return false;
        take();
        return true;
    }
    // Does nothing if it is not held.
    void unlock() {
        if (!std::exchange(held_, false)) return;
        if (runtime().threads) the_mutex().unlock();
        let_handlers_go();
    }

  private:
    void take() {
        held_ = true;
        hold_handlers();
    }

    bool held_ = false;
};

inline Guard lock() {
    Guard guard;
    guard.lock();
    return guard;
}

}  // namespace offpath::mpi::p2p
