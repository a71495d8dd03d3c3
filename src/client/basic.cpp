// The basic primitives of the C API: single sends and receives, matched at the proxies.
#include "base/log.h"
#include "client/caught.h"
#include "client/post_message.h"

using namespace offpath;
using namespace offpath::client;

namespace {

template <typename Command>
Command command_of(offpath_team& team, std::uint32_t peer, std::uint32_t tag) {
    Command command;
    command.team = team.id;
    command.peer = peer;
    command.tag = tag;
    return command;
}

bool usable(offpath_team_h team, const void* buffer, std::size_t bytes, offpath_request_h* request) {
    return team != nullptr && !team->destroyed && request != nullptr && (buffer != nullptr || bytes == 0) &&
           bytes <= schedule::max_slot_bytes;
}

bool is_source(const char* call, const offpath_team& team, std::uint32_t source) {
    if (source < team.size || source == OFFPATH_ANY_SOURCE) return true;
    log::error(Code::arguments, "{} from rank {}: ranks below {} and OFFPATH_ANY_SOURCE are accepted", call,
               source, team.size);
    return false;
}

offpath_status_t receive(const char* call, offpath_team_h team, void* buffer, std::size_t bytes,
                         std::uint32_t source, std::uint32_t mask, std::uint32_t tag,
                         offpath_request_h* request) try {
    if (!usable(team, buffer, bytes, request) || !is_source(call, *team, source)) return OFFPATH_ERR_INVALID;
    auto command = command_of<control::BasicRecv>(*team, source, tag);
    command.mask = mask;
    return to_c(post_message(*team, command, buffer, bytes, request));
} catch (...) {
    return caught(call);
}

}  // namespace

extern "C" {

offpath_status_t offpath_send_offload(offpath_team_h team, const void* buffer, size_t bytes, uint32_t dest,
                                      uint32_t tag, offpath_request_h* request) try {
    if (!usable(team, buffer, bytes, request)) return OFFPATH_ERR_INVALID;
    if (dest >= team->size || tag == OFFPATH_ANY_TAG) {
        log::error(
            Code::arguments,
            "offpath_send_offload to rank {} with tag {}: ranks below {} and tags below {} are accepted",
            dest, tag, team->size, OFFPATH_ANY_TAG);
        return OFFPATH_ERR_INVALID;
    }
    return to_c(
        post_message(*team, command_of<control::BasicSend>(*team, dest, tag), buffer, bytes, request));
} catch (...) {
    return caught("offpath_send_offload");
}

offpath_status_t offpath_recv_offload(offpath_team_h team, void* buffer, size_t bytes, uint32_t source,
                                      uint32_t tag, offpath_request_h* request) {
    return receive("offpath_recv_offload", team, buffer, bytes, source, UINT32_MAX, tag, request);
}

offpath_status_t offpath_recv_masked(offpath_team_h team, void* buffer, size_t bytes, uint32_t source,
                                     uint32_t mask, uint32_t tag, offpath_request_h* request) {
    return receive("offpath_recv_masked", team, buffer, bytes, source, mask, tag, request);
}

offpath_status_t offpath_probe(offpath_team_h team, uint32_t source, uint32_t mask, uint32_t tag, int wait,
                               offpath_request_h* request) try {
    if (!usable(team, nullptr, 0, request) || !is_source("offpath_probe", *team, source))
        return OFFPATH_ERR_INVALID;
    auto command = command_of<control::BasicProbe>(*team, source, tag);
    command.mask = mask;
    command.waits = wait != 0 ? 1 : 0;
    return to_c(post_message(*team, command, nullptr, 0, request));
} catch (...) {
    return caught("offpath_probe");
}
}
