// Messages by key.
#include "base/log.h"
#include "client/caught.h"
#include "client/context.h"

#include <offpath/messages.h>

using namespace offpath;
using namespace offpath::client;

namespace {

template <typename Command>
Status post_mail(offpath_team& team, const void* buffer, std::size_t bytes, std::uint32_t peer,
                 const offpath_message_key_t& key, offpath_request_h* request) {
    offpath_context& context = *team.context;
    auto guard = context.lock();
    offpath_request* made = nullptr;
    if (Status status = context.new_request(&made); status != Status::ok) return status;
    made->receives = std::is_same_v<Command, control::MailRecv>;
    const auto begin = reinterpret_cast<std::uintptr_t>(buffer);
    made->used.assign({{begin, begin + bytes}});
    Command command;
    command.team = team.id;
    command.peer = peer;
    command.completion = made->slot;
    command.key = {key.high, key.low};
    command.range = context.resolve(buffer, bytes);
    if (Status status = context.post(command); status != Status::ok) {
        context.requests.undo(made);
        return status;
    }
    context.ring();
    ++context.operations;
    if (!made->receives) context.bytes += bytes;
    *request = made;
    return Status::ok;
}

bool usable(const char* call, offpath_team_h team, const void* buffer, std::size_t bytes, std::uint32_t peer,
            offpath_request_h* request) {
    if (team == nullptr || team->destroyed || request == nullptr || (buffer == nullptr && bytes != 0))
        return false;
    if (peer < team->size && bytes <= schedule::max_slot_bytes) return true;
    log::error("{}: {} bytes and rank {}: at most {} bytes and ranks below {} are accepted", call, bytes,
               peer, schedule::max_slot_bytes, team->size);
    return false;
}

template <typename Command>
Status post_named(offpath_team_h team, std::uint32_t peer, const offpath_message_key_t& key) {
    if (team == nullptr || team->destroyed || peer >= team->size) return Status::invalid;
    auto guard = team->context->lock();
    Command command;
    command.team = team->id;
    command.peer = peer;
    command.key = {key.high, key.low};
    const Status status = team->context->post(command);
    if (status == Status::ok) team->context->ring();
    return status;
}

}  // namespace

extern "C" {

offpath_status_t offpath_message_send(offpath_team_h team, const void* buffer, size_t bytes, uint32_t dest,
                                      offpath_message_key_t key, offpath_request_h* request) try {
    if (!usable("offpath_message_send", team, buffer, bytes, dest, request)) return OFFPATH_ERR_INVALID;
    return to_c(post_mail<control::MailSend>(*team, buffer, bytes, dest, key, request));
} catch (...) {
    return caught("offpath_message_send");
}

offpath_status_t offpath_message_recv(offpath_team_h team, void* buffer, size_t bytes, uint32_t source,
                                      offpath_message_key_t key, offpath_request_h* request) try {
    if (!usable("offpath_message_recv", team, buffer, bytes, source, request)) return OFFPATH_ERR_INVALID;
    return to_c(post_mail<control::MailRecv>(*team, buffer, bytes, source, key, request));
} catch (...) {
    return caught("offpath_message_recv");
}

offpath_status_t offpath_message_cancel(offpath_team_h team, uint32_t source, offpath_message_key_t key) try {
    return to_c(post_named<control::MailCancel>(team, source, key));
} catch (...) {
    return caught("offpath_message_cancel");
}

offpath_status_t offpath_message_store(offpath_team_h team, uint32_t dest, offpath_message_key_t key) try {
    return to_c(post_named<control::MailStore>(team, dest, key));
} catch (...) {
    return caught("offpath_message_store");
}
}
