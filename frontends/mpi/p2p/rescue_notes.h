// Notes: what the two ends of a message tell each other when a device has lost it (rescue.h).
#pragma once

#include <offpath/messages.h>

#include <cstdint>

#include "runtime/arriving.h"

namespace offpath::mpi::p2p {

struct RescueNote {
    enum Kind : std::uint32_t {
        offer,    // the sender: the message comes by the host's MPI, with `tag`
        request,  // the receiver: its device has lost the message
        refusal,  // the sender: it has no such message any more
    };
    Kind kind = offer;
    std::int32_t tag = 0;
    offpath_message_key_t key{};
    std::int32_t from = 0;  // rank in the world
    std::uint32_t unused = 0;
};

inline Arriving<RescueNote> arriving_rescue_note;

}  // namespace offpath::mpi::p2p
