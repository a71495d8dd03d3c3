// Headers of the messages for instances of schedules. The sequence of Routed is the instance's.
//
// An exchange that both schedules contain needs no request. The receiver sends Ready when its recv op starts;
// the sender's chunks (mover/wire.h) follow once both sides are ready. A small payload travels in one Eager.
//
// Where a rank forwards nothing that it receives, it confirms a payload that has arrived (Plan::confirms).
#pragma once

#include "base/confirmed_bytes.h"
#include "engine/mover/wire.h"

#include <array>

namespace offpath::engine {

struct Eager {
    Routed to;
    std::uint64_t tag;
    std::uint64_t bytes;
};
struct Ready {
    Routed to;
    std::uint64_t tag;
    std::uint64_t bytes;
    std::uint64_t token;        // of the receiving transfer
    std::uint32_t chunk_limit;  // of the receiver
    std::uint32_t confirms;     // not 0: Arrived will follow, and the send is not done before
};
struct Arrived {
    Routed to;
    std::uint64_t tag;
};
struct Signal {
    Routed to;
    std::uint64_t id;
};
struct Abort {
    Routed to;
    std::int64_t status;
};
static_assert(sizeof(Eager) == 56 && sizeof(Ready) == 72 && sizeof(Arrived) == 48 && sizeof(Signal) == 48 &&
              sizeof(Abort) == 48);

// 0: not a kind of schedules.
constexpr std::size_t schedule_header_bytes(Kind kind) {
    switch (kind) {
        case Kind::eager:
            return sizeof(Eager);
        case Kind::ready:
            return sizeof(Ready);
        case Kind::arrived:
            return sizeof(Arrived);
        case Kind::signal:
            return sizeof(Signal);
        case Kind::abort:
            return sizeof(Abort);
        default:
            return 0;
    }
}
constexpr std::size_t most_schedule_header = sizeof(Ready);

}  // namespace offpath::engine
