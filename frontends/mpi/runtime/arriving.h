// Arriving: the place where the host's MPI puts the next message of a mailbox (mailbox.h). Threads: any.
#pragma once

#include <atomic>
#include <cstdint>

namespace offpath::mpi {

template <typename Message>
struct Arriving {
    Message message{};
    std::uint64_t here = 0;  // 1 once it has come

    // Whether one has come, as far as the host's MPI has progressed.
    bool has_come() { return std::atomic_ref(here).load(std::memory_order_relaxed) != 0; }
};

}  // namespace offpath::mpi
