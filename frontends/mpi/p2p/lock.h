// The lock of point-to-point: numbers and what the host's MPI is asked to do must come in one order, so it is
// held over both. It is a mutex only with MPI_THREAD_MULTIPLE. Nothing that waits for another rank is done
// under it, but that settle_early waits for messages that are on their way. Error handlers of the program
// that MPI calls under it run when it is given back, before the MPI call returns.
#pragma once

#include <mutex>
#include <utility>

#include "error_handlers.h"
#include "runtime.h"

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
    // Where it is held.
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
