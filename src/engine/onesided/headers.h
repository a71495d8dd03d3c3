// What engines say to each other for operations on windows.
#pragma once

#include "engine/mover/wire.h"

#include <cstddef>

namespace offpath::engine {

// A put, get, update or lock of a window. Begins as Routed does. Payload: the segments (rma::Segment) where
// there are several, then the operands where `sender` is 0.
struct OneSidedHeader {
    Kind kind;
    std::uint32_t sequence;  // of the messages of this kind from source to dest for this window
    Route route;
    std::uint64_t window;
    std::uint64_t offset;    // of a single segment
    std::uint64_t bytes;     // at the target
    std::uint64_t part;      // of the origin's call: it is answered
    std::uint64_t sender;    // token of the transfer that has the operands, or 0
    std::uint64_t receiver;  // token of the transfer that takes the result, or 0
    std::uint8_t operation, type, reduction;
    std::uint8_t ordered;  // 1: held back until all before it from this source is done
    std::uint32_t segments;
};
struct OneSidedAnswer {
    Kind kind;
    std::int32_t status;
    std::uint64_t part;
};
// The only message beside chunks that may be fetched. Payload: as many times a Bundled, the header that it
// tells of, and that message's payload.
struct OneSidedBundle {
    Kind kind;
    std::uint32_t messages;
};
struct Bundled {
    std::uint16_t header_bytes, payload_bytes;
};
static_assert(sizeof(OneSidedHeader) == 96 && sizeof(OneSidedAnswer) == 16);
static_assert(offsetof(OneSidedHeader, sequence) == offsetof(Routed, sequence) &&
              offsetof(OneSidedHeader, route) == offsetof(Routed, route));
static_assert(sizeof(OneSidedBundle) == 8 && sizeof(Bundled) == 4);

}  // namespace offpath::engine
