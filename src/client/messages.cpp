// Messages by key.
#include "base/log.h"
#include "client/caught.h"
#include "client/post_message.h"

#include <offpath/messages.h>

using namespace offpath;
using namespace offpath::client;

namespace {

template <typename Command>
Command command_of(offpath_team& team, std::uint32_t peer, const offpath_message_key_t& key) {
    Command command;
    command.team = team.id;
    command.peer = peer;
    command.key = {key.high, key.low};
    return command;
}

bool usable(const char* call, offpath_team_h team, const void* buffer, std::size_t bytes, std::uint32_t peer,
            offpath_request_h* request) {
    if (team == nullptr || team->destroyed || request == nullptr || (buffer == nullptr && bytes != 0))
        return false;
    if (peer < team->size && bytes <= schedule::max_slot_bytes) return true;
    log::error(Code::arguments, "{}: {} bytes and rank {}: at most {} bytes and ranks below {} are accepted",
               call, bytes, peer, schedule::max_slot_bytes, team->size);
    return false;
}

template <typename Command>
Status post_named(offpath_team_h team, std::uint32_t peer, const offpath_message_key_t& key) {
    if (team == nullptr || team->destroyed || peer >= team->size) return Status::invalid;
    auto guard = team->context->lock();
    const Status status = team->context->post(command_of<Command>(*team, peer, key));
    if (status == Status::ok) team->context->ring();
    return status;
}

}  // namespace

extern "C" {

offpath_status_t offpath_message_send(offpath_team_h team, const void* buffer, size_t bytes, uint32_t dest,
                                      offpath_message_key_t key, offpath_request_h* request) try {
    if (!usable("offpath_message_send", team, buffer, bytes, dest, request)) return OFFPATH_ERR_INVALID;
    return to_c(
        post_message(*team, command_of<control::KeyedSend>(*team, dest, key), buffer, bytes, request));
} catch (...) {
    return caught("offpath_message_send");
}

offpath_status_t offpath_message_recv(offpath_team_h team, void* buffer, size_t bytes, uint32_t source,
                                      offpath_message_key_t key, offpath_request_h* request) try {
    if (!usable("offpath_message_recv", team, buffer, bytes, source, request)) return OFFPATH_ERR_INVALID;
    return to_c(
        post_message(*team, command_of<control::KeyedRecv>(*team, source, key), buffer, bytes, request));
} catch (...) {
    return caught("offpath_message_recv");
}

offpath_status_t offpath_message_cancel(offpath_team_h team, uint32_t source, offpath_message_key_t key) try {
    return to_c(post_named<control::KeyedCancel>(team, source, key));
} catch (...) {
    return caught("offpath_message_cancel");
}

offpath_status_t offpath_message_store(offpath_team_h team, uint32_t dest, offpath_message_key_t key) try {
    return to_c(post_named<control::KeyedStore>(team, dest, key));
} catch (...) {
    return caught("offpath_message_store");
}
}
