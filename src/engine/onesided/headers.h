// Headers of the messages for window operations.
#pragma once

#include "engine/mover/wire.h"
#include "rma/access.h"

#include <cstddef>

namespace offpath::engine {

// A put, get, update or lock of a window. Starts as Routed does. Payload: the segments (rma::Segment) if
// there are several, then the operands if `sender` is 0.
struct OneSidedHeader {
    Kind kind;
    std::uint32_t sequence;  // of the messages of this kind from source to dest for this window
    Route route;
    std::uint64_t window;
    std::uint64_t offset;    // of a single segment
    std::uint64_t bytes;     // at the target
    std::uint64_t part;      // names the part of the origin's call; the answer carries it
    std::uint64_t sender;    // token of the transfer that has the operands, or 0
    std::uint64_t receiver;  // token of the transfer that takes the result, or 0
    rma::OpKind operation;
    std::uint8_t type, reduction;
    std::uint8_t ordered;  // 1: held back until all earlier ones from this source are done
    std::uint32_t segments;
    std::uint32_t mark, unused;  // rma::Access

    void describe(const rma::Access& access) {
        offset = access.offset;
        bytes = access.bytes;
        operation = access.kind;
        type = access.type;
        reduction = access.reduction;
        ordered = access.ordered;
        mark = access.mark;
    }
    rma::Access access() const {
        return {offset, bytes, route.dest, operation, type, reduction, ordered, mark};
    }
};
struct OneSidedAnswer {
    Kind kind;
    std::int32_t status;
    std::uint64_t part;
};
// The only message besides chunks that may be fetched. Payload: for each message a Bundled, then the
// message's header and payload.
struct OneSidedBundle {
    Kind kind;
    std::uint32_t messages;
};
struct Bundled {
    std::uint16_t header_bytes, payload_bytes;
};
static_assert(sizeof(OneSidedHeader) == 104 && sizeof(OneSidedAnswer) == 16);
static_assert(offsetof(OneSidedHeader, sequence) == offsetof(Routed, sequence) &&
              offsetof(OneSidedHeader, route) == offsetof(Routed, route));
static_assert(sizeof(OneSidedBundle) == 8 && sizeof(Bundled) == 4);

}  // namespace offpath::engine
