// Notices: what the two ends of a kind of message tell each other, in messages of the host's MPI on
// payload_comm().
//
// Threads: one. Not used with MPI_THREAD_MULTIPLE, except for opening and closing, which are collective.
#pragma once

#include <cstdint>
#include <optional>

namespace offpath::mpi::p2p {

struct EndNotice {
    enum Kind : std::uint32_t {
        computes,         // the receiver, beside such messages
        only_waits,       // the receiver, for such messages
        shares_a_buffer,  // the receiver, between such messages (shared_buffers.h)
        without_headers,  // is how the sender sends them, from `number` on
        was_too_short,    // the receiver had a receive that was too short for such a message
    };
    std::uint64_t pairs = 0;         // of which communicator
    std::int32_t from = 0, tag = 0;  // in it
    Kind kind = computes;
    std::uint32_t number = 0;  // of a message
};

void open_notices();
// Waits until all notices sent by any rank have arrived.
void close_notices();

// `to`: the other end's rank in the world.
void send_notice(int to, const EndNotice& notice);
// A notice that has arrived, if there is one.
std::optional<EndNotice> next_notice(bool ask);

}  // namespace offpath::mpi::p2p
