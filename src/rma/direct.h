// The direct path: a host rank sends small window operations straight to the target's proxy, bypassing its
// own proxy. The target's proxy executes each one at once, in order of arrival, or refuses it. Requests on
// one connection therefore need no sequence numbers, and answers come in the same order. Small requests that
// the caller does not wait for individually travel together, and so do their answers.
//
// This is the protocol after the handshake: headers of a transport's messages, fixed sizes, little endian.
// The handshake uses control messages (control/messages.h), which travel as payload under Kind::handshake.
// Plain values; read() checks length and kind only.
#pragma once

#include "rma/access.h"

#include <bit>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace offpath::rma::direct {

static_assert(std::endian::native == std::endian::little, "headers are copied as they lie in memory");

// The most operand bytes of one request, and the most result bytes of one answer.
constexpr std::uint64_t piece_bytes = 8 << 10;
// The most result bytes that one request may ask for. They come in answers of piece_bytes.
constexpr std::uint64_t most_result_bytes = 64 << 10;

// The most elements of one strided request. The proxy moves them one by one and serves no other request
// meanwhile.
constexpr std::uint64_t most_elements = 8 << 10;

enum class Kind : std::uint32_t { handshake = 1, request, answer, requests, answers };

struct Handshake {
    Kind kind;
    std::uint32_t path;  // the caller's name for the connection; the answers carry it
};

// An access to elements that lie `stride` bytes apart, the first at the offset. An element of 0 bytes: the
// bytes are contiguous.
struct StridedAccess : Access {
    std::uint64_t element = 0, stride = 0;
};

// Payload: the operands.
struct Request {
    Kind kind;
    std::uint32_t dest;    // rank of the target in its team
    std::uint64_t token;   // names the connection
    std::uint64_t number;  // of the request; the answer carries it
    std::uint64_t team, window;
    std::uint64_t offset;
    std::uint32_t bytes;  // at the target
    OpKind operation;
    std::uint8_t type, reduction, unused;
    std::uint32_t element;
    std::uint32_t origin;  // rank of the caller in the team
    std::uint64_t stride;
    std::uint32_t mark, unused_2;

    void describe(const StridedAccess& access) {
        dest = access.target;
        offset = access.offset;
        bytes = static_cast<std::uint32_t>(access.bytes);
        operation = access.kind;
        type = access.type;
        reduction = access.reduction;
        element = static_cast<std::uint32_t>(access.element);
        stride = access.stride;
        mark = access.mark;
    }
    StridedAccess access() const {
        return {{offset, bytes, dest, operation, type, reduction, 0, mark}, element, stride};
    }
};

// Payload: `bytes` of the result from `offset` on. An answer with an error is the last one of its request.
// Otherwise the last one is the one that completes the result. An answer also acknowledges all earlier
// requests that ask for no result and were not answered.
struct Answer {
    Kind kind;
    std::int32_t status;
    std::uint64_t number;
    std::uint32_t offset, bytes;
};

// Payload: `count` requests of one connection, each followed by its operands; or `count` answers, each
// followed by its part of the result.
struct Bundle {
    Kind kind;
    std::uint32_t count;
};
static_assert(sizeof(Handshake) == 8 && sizeof(Request) == 80 && sizeof(Answer) == 24 && sizeof(Bundle) == 8);

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

// Takes `bytes` from the front. False: there are fewer.
inline bool take(std::span<const std::byte>& from, std::uint64_t bytes, std::span<const std::byte>& taken) {
    if (bytes > from.size()) return false;
    taken = from.first(static_cast<std::size_t>(bytes));
    from = from.subspan(static_cast<std::size_t>(bytes));
    return true;
}

// Takes the next header of a bundle. False: it is not of this kind.
template <typename Header>
bool take(std::span<const std::byte>& from, Kind kind, Header& header) {
    std::span<const std::byte> bytes;
    return take(from, sizeof(Header), bytes) && read(bytes, kind, header);
}

}  // namespace offpath::rma::direct
