// Session's execution of commands for messages.
#include "proxy/session.h"

namespace offpath::proxy {
namespace {

constinit trace::Name send_in_trace("send"), receive_in_trace("receive"), probe_in_trace("probe");

}  // namespace

bool Session::execute(const control::BasicSend& command) {
    TeamEntry* team = find_team(command.team);
    return perform_on(team, command.completion, [&](ClientOperation& operation) {
        const memory::HostRange range = to_range(command.range);
        note_begin(operation, send_in_trace, range.bytes);
        if (command.peer >= team->size) return Status::invalid;
        if (!pin(operation, range)) return Status::access;
        return engine_.send(*team->team, range, command.peer, command.tag, &operation);
    });
}

bool Session::execute(const control::BasicRecv& command) {
    TeamEntry* team = find_team(command.team);
    return perform_on(team, command.completion, [&](ClientOperation& operation) {
        operation.receives = true;
        const memory::HostRange range = to_range(command.range);
        note_begin(operation, receive_in_trace, range.bytes);
        if (command.peer >= team->size && command.peer != UINT32_MAX) return Status::invalid;
        if (!pin(operation, range)) return Status::access;
        return engine_.recv(*team->team, range, command.peer, command.tag, &operation.message, &operation,
                            command.mask);
    });
}

bool Session::execute(const control::BasicProbe& command) {
    TeamEntry* team = find_team(command.team);
    return perform_on(team, command.completion, [&](ClientOperation& operation) {
        operation.receives = true;
        note_begin(operation, probe_in_trace, 0);
        if (command.peer >= team->size && command.peer != UINT32_MAX) return Status::invalid;
        return engine_.probe(*team->team, command.peer, command.mask, command.tag, command.waits != 0,
                             &operation.message, &operation);
    });
}

bool Session::execute(const control::KeyedSend& command) {
    TeamEntry* team = find_team(command.team);
    return perform_on(team, command.completion, [&](ClientOperation& operation) {
        const memory::HostRange range = to_range(command.range);
        note_begin(operation, send_in_trace, range.bytes);
        if (!pin(operation, range)) return Status::access;
        return engine_.keyed_send(*team->team, range, command.peer, command.key, &operation);
    });
}

bool Session::execute(const control::KeyedRecv& command) {
    TeamEntry* team = find_team(command.team);
    return perform_on(team, command.completion, [&](ClientOperation& operation) {
        operation.receives = true;
        const memory::HostRange range = to_range(command.range);
        note_begin(operation, receive_in_trace, range.bytes);
        if (!pin(operation, range)) return Status::access;
        return engine_.keyed_recv(*team->team, range, command.peer, command.key, &operation.message,
                                  &operation);
    });
}

bool Session::execute(const control::KeyedCancel& command) {
    TeamEntry* team = find_team(command.team);
    if (team == nullptr) return false;
    if (team->failure == Status::ok) engine_.keyed_cancel(*team->team, command.peer, command.key);
    return true;
}

bool Session::execute(const control::KeyedStore& command) {
    TeamEntry* team = find_team(command.team);
    if (team == nullptr) return false;
    if (team->failure == Status::ok) engine_.keyed_store(*team->team, command.peer, command.key);
    return true;
}

}  // namespace offpath::proxy
