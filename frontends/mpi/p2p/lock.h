// The lock of point-to-point: numbers and what the host's MPI is asked to do must come in one order, so it is
// held over both. Taken only with MPI_THREAD_MULTIPLE. Nothing that waits for another rank is done under it,
// but that settle_early waits for messages that are on their way.
#pragma once

#include <mutex>

#include "runtime.h"

namespace offpath::mpi::p2p {

inline std::mutex& the_mutex() {
    static std::mutex mutex;
    return mutex;
}

inline std::unique_lock<std::mutex> lock() {
    return runtime().threads ? std::unique_lock(the_mutex()) : std::unique_lock<std::mutex>();
}

}  // namespace offpath::mpi::p2p
