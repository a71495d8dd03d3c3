// Frames: what two TCP transports exchange over a connection. Little endian:
//   u16 magic, u8 kind, u8 header length, u32 zero, u64 payload bytes; then the header and the payload. A
//   payload larger than inline_bytes is followed by its status, i32: ok, or access when the sender's memory
//   was not there (zeros then replace it).
// hello: from the connecting side. Its header holds the listener's id (16 bytes), its own id (16), u32
// number. welcome: answers hello; from then on the connection is established. message: everything else.
#pragma once

#include "base/little_endian.h"
#include "transport/transport.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace offpath::transport::tcp {

enum class FrameKind : std::uint8_t { hello = 1, welcome, message };

constexpr std::size_t prefix_bytes = 16;
constexpr std::size_t trailer_bytes = 4;
constexpr std::size_t hello_bytes = 36;
// A payload of up to this size comes with its message.
constexpr std::size_t inline_bytes = Transport::max_post;
constexpr std::size_t max_payload_bytes = std::size_t{1} << 40;

struct Prefix {
    FrameKind kind = FrameKind::message;
    std::size_t header = 0, payload = 0;
};

constexpr std::uint16_t frame_magic = 0x4654;

inline void encode_prefix(const Prefix& prefix, std::span<std::byte> room) {
    write_little(room, 0, frame_magic, 2);
    write_little(room, 2, static_cast<std::uint64_t>(prefix.kind), 1);
    write_little(room, 3, prefix.header, 1);
    write_little(room, 4, 0, 4);
    write_little(room, 8, prefix.payload, 8);
}

// Returns false when the bytes are not a frame.
inline bool decode_prefix(std::span<const std::byte> bytes, Prefix& prefix) {
    const std::uint64_t kind = read_little(bytes, 2, 1);
    prefix.kind = static_cast<FrameKind>(kind);
    prefix.header = read_little(bytes, 3, 1);
    prefix.payload = read_little(bytes, 8, 8);
    if (read_little(bytes, 0, 2) != frame_magic || read_little(bytes, 4, 4) != 0) return false;
    switch (prefix.kind) {
        case FrameKind::hello:
            return prefix.header == hello_bytes && prefix.payload == 0;
        case FrameKind::welcome:
            return prefix.header == 0 && prefix.payload == 0;
        case FrameKind::message:
            return prefix.header <= Transport::max_wire_header && prefix.payload <= max_payload_bytes;
    }
    return false;
}

}  // namespace offpath::transport::tcp
