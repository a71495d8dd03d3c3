// Header: the small message that the host's MPI carries in place of a large one.
//
// It uses the user's communicator, destination and tag. The host's MPI therefore matches it as it would have
// matched the message, which preserves all of MPI's ordering rules. The receiver recognises it by its size:
// between two participating ranks, a message of the host's MPI has header_bytes bytes if and only if it is a
// header. (A user's message of exactly this size is also sent with a header.) The announced message comes
// from the device under a key. One of exactly this size comes as a second message of the host's MPI, on a
// communicator of our own.
//
// On the wire a header looks like random bytes and is unique, and it ends in a check that only this job can
// compute. The watcher (header_watcher.h) can therefore tell it from other bytes in a receive's buffer, and a
// complete header from a partial one.
#pragma once

#include <mpi.h>
#include <offpath/messages.h>

#include <array>
#include <cstdint>
#include <optional>

namespace offpath::mpi::p2p {

constexpr int header_bytes = 61;
// Size of the landing for receives with room for a header at most: a truncated message is still longer than a
// header.
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

// Rank 0 draws it at random for the job.
struct HeaderSecret {
    std::uint64_t first = 0, second = 0;
};
HeaderSecret draw_header_secret();
// Call it before the first header. `rank` is the world rank; it makes headers unique across ranks.
void open_headers(const HeaderSecret& secret, int rank);

// encode() needs the lock.
HeaderBytes encode(const Header& header);
// The bytes must be a header.
Header decode(const void* bytes);
// Nothing: the bytes are not a header, or it was overwritten.
std::optional<Header> decode_if_whole(const void* bytes);
// Whether the bytes are a complete header of this job. Any thread.
bool is_header(const HeaderBytes& bytes);

}  // namespace offpath::mpi::p2p
