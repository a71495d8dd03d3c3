// Leaving messages: those whose bytes are no longer the program's, and which may leave after the operation
// that sends them has ended. Each list of messages keeps its bytes until all of them have left.
//
// Threads: any.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace offpath::mpi {

struct LeavingMessages {
    std::vector<std::byte> bytes;
    std::vector<MPI_Request> requests;
    int sender = -1;                        // what its sender is known by; several may have none
    std::unique_ptr<LeavingMessages> next;  // of those that leave
};

inline std::atomic<std::uint32_t> lists_of_leaving_messages{0};

// Takes over messages that have been started.
void let_leave(std::unique_ptr<LeavingMessages> messages) noexcept;
// Whether messages of this sender have not left yet.
bool leave_still(int sender);
// Ends messages that have left. poll() calls it.
void finish_leaving_messages();
// Waits until all have left, as long as for a lost device. Before the communicators that they need end.
void wait_for_leaving_messages();

}  // namespace offpath::mpi
