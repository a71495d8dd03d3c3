// Posts a single send or receive of the C API: makes the request, records the memory, posts the command.
// Threads: takes the context's lock.
#pragma once

#include "client/context.h"

#include <type_traits>

namespace offpath::client {

// The caller fills `command`, except the completion and the memory.
template <typename Command>
Status post_message(offpath_team& team, Command command, const void* buffer, std::size_t bytes,
                    offpath_request_h* request) {
    constexpr bool probes = std::is_same_v<Command, control::BasicProbe>;
    constexpr bool receives =
        probes || std::is_same_v<Command, control::BasicRecv> || std::is_same_v<Command, control::KeyedRecv>;
    offpath_context& context = *team.context;
    auto guard = context.lock();
    offpath_request* made = nullptr;
    if (Status status = context.new_request(&made); status != Status::ok) return status;
    made->receives = receives;
    const auto begin = reinterpret_cast<std::uintptr_t>(buffer);
    made->used.assign({{begin, begin + bytes}});
    command.completion = made->slot;
    if constexpr (!probes) {
        command.range = context.resolve(buffer, bytes);
        if (command.range.region == 0) context.note_use(*made, 0);
    }
    if (Status status = context.post(command); status != Status::ok) {
        context.requests.undo(made);
        return status;
    }
    context.ring();
    ++context.operations;
    if (!receives) context.bytes += bytes;
    *request = made;
    return Status::ok;
}

}  // namespace offpath::client
