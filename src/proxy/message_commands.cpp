// Session's execution of commands about keyed messages.
#include "proxy/session.h"

namespace offpath::proxy {

bool Session::execute(const control::KeyedSend& command) {
    TeamEntry* team = find_team(command.team);
    if (team == nullptr || !check_slot(command.completion)) return false;
    Operation& operation = take_operation(command.completion);
    const memory::HostRange range = to_range(command.range);
    Status status = team->failure;
    if (status == Status::ok && !pin(operation, range)) status = Status::access;
    if (status == Status::ok)
        status = engine_.keyed_send(*team->team, range, command.peer, command.key, &operation);
    if (status != Status::in_progress) settle(operation, status);
    return true;
}

bool Session::execute(const control::KeyedRecv& command) {
    TeamEntry* team = find_team(command.team);
    if (team == nullptr || !check_slot(command.completion)) return false;
    Operation& operation = take_operation(command.completion);
    operation.receives = true;
    const memory::HostRange range = to_range(command.range);
    Status status = team->failure;
    if (status == Status::ok && !pin(operation, range)) status = Status::access;
    if (status == Status::ok)
        status =
            engine_.keyed_recv(*team->team, range, command.peer, command.key, &operation.message, &operation);
    if (status != Status::in_progress) settle(operation, status);
    return true;
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
