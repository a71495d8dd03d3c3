// Notices: what a receiver tells the sender of its messages, by messages of the host's MPI on payload_comm().
//
// Threads: one; not used with MPI_THREAD_MULTIPLE but for opening and closing, which are collective.
#pragma once

#include <cstdint>
#include <optional>

namespace offpath::mpi::p2p {

struct Notice {
    std::uint64_t pairs = 0;             // of which communicator
    std::int32_t receiver = 0, tag = 0;  // in it
    bool only_waits = false;             // the receiver, for such messages
};

void open_notices();
// Until all that were sent, on any rank, have come.
void close_notices();

// `sender`: its rank in the world.
void send_notice(int sender, const Notice& notice);
// One that has come.
std::optional<Notice> next_notice();

}  // namespace offpath::mpi::p2p
