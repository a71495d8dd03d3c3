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
    // The persistent operation that sends them: its communicator's team, and its lane there. 0 and -1: none.
    std::uint64_t team = 0;
    int lane = -1;
    std::unique_ptr<LeavingMessages> next;  // of those that leave
};

inline std::atomic<std::uint32_t> lists_of_leaving_messages{0};

// Takes over messages that have been started.
void let_leave(std::unique_ptr<LeavingMessages> messages) noexcept;
// Whether earlier messages of the same operation have not left yet.
bool must_follow_others(const LeavingMessages& messages);
// Ends messages that have left. poll() calls it.
void finish_leaving_messages();
// Waits until all have left, as long as for a lost device. Before the communicators that they need end.
void wait_for_leaving_messages();

}  // namespace offpath::mpi
