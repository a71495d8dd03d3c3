// Header: what the host's MPI carries in place of a large message.
//
// It travels with the user's communicator, destination and tag, so the host's MPI matches it as it would have
// matched the message, and all of MPI's rules of order hold by themselves. The receiver knows it by its size:
// between two ranks that take part, a message of the host's MPI has header_bytes bytes if and only if it is a
// header. (A user's message of this very size is sent with a header too.) What it announces comes from the
// device under a key, or, if it has this very size, as a second message of the host's MPI on a communicator
// of our own.
//
// On the wire a header looks like random bytes, which no two headers share, and ends in a check that only
// this job can make. So the watcher (watcher.h) can tell it from any other bytes in a receive's buffer, and
// one that has come in part from one that is complete.
#pragma once

#include <mpi.h>
#include <offpath/messages.h>

#include <array>
#include <cstdint>
#include <optional>

namespace offpath::mpi::p2p {

constexpr int header_bytes = 61;
// Where receives without more room than a header's land: what is cut off there is longer than a header.
constexpr int short_landing_bytes = 64;

struct Header {
    static constexpr std::uint32_t by_device = 0x6f66700au;
    static constexpr std::uint32_t by_host = 0x6f66700bu;

    std::uint32_t kind = by_device;
    std::int32_t payload_tag = 0;  // by_host
    std::uint64_t bytes = 0;
    offpath_message_key_t key{};                // by_device
    std::uint32_t source = 0, destination = 0;  // ranks of the world
};
static_assert(sizeof(Header) == 40);

using HeaderBytes = std::array<char, header_bytes>;

// Drawn at random by rank 0 for the job.
struct HeaderSecret {
    std::uint64_t first = 0, second = 0;
};
HeaderSecret draw_header_secret();
// Before the first header. `rank` in the world: ranks' headers differ.
void open_headers(const HeaderSecret& secret, int rank);

// Under the lock.
HeaderBytes encode(const Header& header);
// Of bytes that are a header.
Header decode(const void* bytes);
// Nothing: they are none, or one that was written over.
std::optional<Header> decode_if_whole(const void* bytes);
// Whether bytes are a complete header of this job. Any thread.
bool is_header(const HeaderBytes& bytes);

}  // namespace offpath::mpi::p2p
