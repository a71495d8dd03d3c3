// The direct path: small operations on windows that a host rank asks of the target's proxy itself, without
// its own proxy between. The proxy carries out each one at once, in the order in which they come, or refuses
// it; so what comes over one connection needs no numbers to be put in order, and its answers come in order
// too. Small ones that nobody waits for by themselves travel together, and so do their answers. This is what
// the two say to each other once they know each other: headers of a transport's messages, fixed sizes, little
// endian. Their handshake is made of control messages (control/messages.h), which travel as payload under
// Kind::handshake. Plain values; read() checks the length alone.
#pragma once

#include "rma/operation.h"

#include <bit>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace offpath::rma::direct {

static_assert(std::endian::native == std::endian::little, "headers are copied as they lie in memory");

// Operands of one request, and result bytes of one answer.
constexpr std::uint64_t piece_bytes = 8 << 10;
// What one request may ask for; it comes in answers of piece_bytes.
constexpr std::uint64_t most_result_bytes = 64 << 10;

// Elements of one strided request: the proxy moves each by itself, and serves nobody else meanwhile.
constexpr std::uint64_t most_elements = 8 << 10;

enum class Kind : std::uint32_t { handshake = 1, request, answer, requests, answers };

struct Handshake {
    Kind kind;
    std::uint32_t path;  // what the caller calls the connection; the answers name it
};

// Payload: the operands.
struct Request {
    Kind kind;
    std::uint32_t dest;    // rank of the target in its team
    std::uint64_t token;   // names the connection
    std::uint64_t number;  // of the request; the answers name it
    std::uint64_t team, window;
    std::uint64_t offset;
    std::uint32_t bytes;  // at the target
    std::uint8_t operation, type, reduction, unused;
    std::uint32_t element;  // 0: the bytes lie side by side; else in elements of so many,
    std::uint32_t origin;   // rank of the caller in the team
    std::uint64_t stride;   // of elements: the first at `offset`, the others so many bytes apart
};

// Payload: `bytes` of the result from `offset` on. An answer with an error is the last of its request; else
// the last is the one that completes the result. It also says that all requests before it that ask for no
// result, and were not answered, are done.
struct Answer {
    Kind kind;
    std::int32_t status;
    std::uint64_t number;
    std::uint32_t offset, bytes;
};

// Payload: `count` requests of one connection, each followed by its operands, or answers, each followed by
// its part of the result.
struct Bundle {
    Kind kind;
    std::uint32_t count;
};
static_assert(sizeof(Handshake) == 8 && sizeof(Request) == 72 && sizeof(Answer) == 24 && sizeof(Bundle) == 8);

template <typename Header>
std::span<const std::byte> bytes_of(const Header& header) {
    static_assert(std::is_trivially_copyable_v<Header>);
    return std::as_bytes(std::span<const Header, 1>(&header, 1));
}

// False: not a header of this kind.
template <typename Header>
bool read(std::span<const std::byte> bytes, Kind kind, Header& header) {
    if (bytes.size() != sizeof(Header)) return false;
    std::memcpy(&header, bytes.data(), sizeof(Header));
    return header.kind == kind;
}

template <typename Header>
void append(std::vector<std::byte>& bundle, const Header& header, std::span<const std::byte> payload) {
    const auto head = bytes_of(header);
    bundle.insert(bundle.end(), head.begin(), head.end());
    bundle.insert(bundle.end(), payload.begin(), payload.end());
}

// Takes `bytes` from the front. False: there are not so many.
inline bool take(std::span<const std::byte>& from, std::uint64_t bytes, std::span<const std::byte>& taken) {
    if (bytes > from.size()) return false;
    taken = from.first(static_cast<std::size_t>(bytes));
    from = from.subspan(static_cast<std::size_t>(bytes));
    return true;
}

// The next of a bundle's. False: that is none.
template <typename Header>
bool take(std::span<const std::byte>& from, Kind kind, Header& header) {
    std::span<const std::byte> bytes;
    return take(from, sizeof(Header), bytes) && read(bytes, kind, header);
}

}  // namespace offpath::rma::direct
