// Header: what the host's MPI carries in place of a large message.
//
// It travels with the user's communicator, destination and tag, so the host's MPI matches it as it would have
// matched the message, and all of MPI's rules of order hold by themselves. The receiver knows it by its size:
// between two ranks that take part, a message of the host's MPI has header_bytes bytes if and only if it is a
// header. (A user's message of this very size is sent with a header too.) What it announces comes from the
// device under a key, or as a second message of the host's MPI on a communicator of our own.
#pragma once

#include <mpi.h>
#include <offpath/messages.h>

#include <array>
#include <cstdint>
#include <cstring>

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
    offpath_message_key_t key{};  // by_device
};
static_assert(sizeof(Header) == 32 && sizeof(Header) <= header_bytes);

using HeaderBytes = std::array<char, header_bytes>;

inline HeaderBytes encode(const Header& header) {
    HeaderBytes bytes{};
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
}
inline Header decode(const void* bytes) {
    Header header;
    std::memcpy(&header, bytes, sizeof header);
    return header;
}

}  // namespace offpath::mpi::p2p
