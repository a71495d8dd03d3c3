// The bytes of encrypted messages and of the addresses of encrypting transports. Little endian.
//
// Address: magic "OFEN", u8 version, u8 ciphers that the transport knows (bits of Cipher), u16 zero, its
// public key (32 bytes), its admission (32), the address of the transport below, and a digest of all that
// (16).
//
// Message: the header that the transport below carries begins with a clear part: u8 version, u8 kind, u8
// cipher, u8 zero, u32 stream, u64 number in the stream, the sender's public key (32), the payload's tag (16;
// zeros without a payload). The caller's header follows, encrypted, and its tag (16). That tag also covers
// the clear part and the payload's size. The encrypted payload is as long as the payload itself.
//
// Questions and answers are messages without a payload. The header of an answer lists the streams of the one
// who answers: u32 stream, u64 number of its next message; for each.
#pragma once

#include "transport/encrypted/cipher.h"
#include "transport/transport.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace offpath::transport::encrypted {

constexpr std::uint8_t format_version = 2;

enum class Kind : std::uint8_t { message = 1, question, answer };

// The clear part of a message.
struct Clear {
    Kind kind = Kind::message;
    Cipher cipher = Cipher::chacha20_poly1305;
    Nonce nonce;
    PublicKey sender{};
    Tag payload{};
};
constexpr std::size_t clear_bytes = 64;
static_assert(Transport::max_header + clear_bytes + tag_bytes == Transport::max_wire_header);

void encode(const Clear& clear, std::span<std::byte> room);
// Returns false when the bytes are not the beginning of an encrypted message.
bool decode(std::span<const std::byte> bytes, Clear& clear);
// What a header's tag covers besides the header.
std::array<std::byte, clear_bytes + 8> covered_by_tag(std::span<const std::byte> clear,
                                                      std::size_t payload_bytes);

struct Address {
    std::uint8_t ciphers = 0;
    PublicKey key{};
    Admission admission{};
    std::span<const std::byte> below;
};
bool is_address(std::span<const std::byte> bytes);
std::vector<std::byte> encode(const Address& address);
// `address.below` points into `bytes`. Errors: protocol or version, with `problem`.
Status decode(std::span<const std::byte> bytes, Address& address, std::string& problem);

struct Position {
    std::uint32_t stream = 0;
    std::uint64_t next = 0;
};
constexpr std::size_t position_bytes = 12;
constexpr std::size_t max_positions = Transport::max_header / position_bytes;

}  // namespace offpath::transport::encrypted
