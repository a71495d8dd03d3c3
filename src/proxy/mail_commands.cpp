// Session's execution of commands about mail.
#include "proxy/session.h"

namespace offpath::proxy {
namespace {

engine::MailKey to_key(const control::MailKey& key) {
    return {key.high, key.low};
}

}  // namespace

bool Session::execute(const control::MailSend& command) {
    TeamEntry* team = find_team(command.team);
    if (team == nullptr || !check_slot(command.completion)) return false;
    Operation& operation = take_operation(command.completion);
    const memory::HostRange range = to_range(command.range);
    Status status = team->failure;
    if (status == Status::ok && !pin(operation, range)) status = Status::access;
    if (status == Status::ok)
        status = engine_.mail_send(*team->team, range, command.peer, to_key(command.key), &operation);
    if (status != Status::in_progress) settle(operation, status);
    return true;
}

bool Session::execute(const control::MailRecv& command) {
    TeamEntry* team = find_team(command.team);
    if (team == nullptr || !check_slot(command.completion)) return false;
    Operation& operation = take_operation(command.completion);
    operation.receives = true;
    const memory::HostRange range = to_range(command.range);
    Status status = team->failure;
    if (status == Status::ok && !pin(operation, range)) status = Status::access;
    if (status == Status::ok)
        status = engine_.mail_recv(*team->team, range, command.peer, to_key(command.key), &operation.message,
                                   &operation);
    if (status != Status::in_progress) settle(operation, status);
    return true;
}

bool Session::execute(const control::MailCancel& command) {
    TeamEntry* team = find_team(command.team);
    if (team == nullptr) return false;
    if (team->failure == Status::ok) engine_.mail_cancel(*team->team, command.peer, to_key(command.key));
    return true;
}

bool Session::execute(const control::MailStore& command) {
    TeamEntry* team = find_team(command.team);
    if (team == nullptr) return false;
    if (team->failure == Status::ok) engine_.mail_store(*team->team, command.peer, to_key(command.key));
    return true;
}

}  // namespace offpath::proxy
