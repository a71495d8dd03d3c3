// Headers of the messages between ranks. A message that is not small is first announced; the receiver's
// engine answers with a Grant (mover/wire.h).
#pragma once

#include "engine/mover/wire.h"
#include "engine/shared/identifiers.h"

namespace offpath::engine {

// A basic send. The sequence counts messages from source to dest. The payload comes with it, or `token` names
// the sending transfer.
struct BasicRequest {
    Routed to;
    std::uint64_t tag;
    std::uint64_t bytes;  // of the whole payload
    std::uint64_t token;
};
struct Keyed {
    Routed to;
    MessageKey key;
    std::uint64_t bytes;
    std::uint64_t token;  // of the sending transfer
};
struct KeyedStoreRequest {
    Routed to;
    MessageKey key;
};
static_assert(sizeof(BasicRequest) == 64 && sizeof(Keyed) == 72 && sizeof(KeyedStoreRequest) == 56);

}  // namespace offpath::engine
