// Keyed messages. A message meets its receive by a key, which both hosts derive from what they know. Nothing
// is ordered or matched here. So a receive may be posted long before its message arrives, and the payload
// moves while both hosts compute.
#include "base/log.h"
#include "engine/messages/messages.h"

#include <algorithm>
#include <new>

namespace offpath::engine {
namespace {

// The most messages of one team that may be announced and not yet received. More than this means that a host
// is in error.
constexpr std::size_t max_waiting = 1 << 20;

}  // namespace

Status Messages::keyed_send(Team& team, const memory::HostRange& buffer, std::uint32_t dest,
                            const MessageKey& key, Completion* done) {
    if (dest >= team.peers.size() || team.destroyed) return Status::invalid;
    if (team.session->closing) return Status::canceled;
    if (team.gone(dest)) return Status::peer_lost;
    Peer& peer = *team.peers[dest];
    MessageOp& op = new_op(team, buffer, dest, false, done);
    op.send = new_send(op, team.location(buffer), buffer.bytes);
    op.send->peer = &peer;
    op.send->awaits_end = !peer.self;
    core_.peers.tell(
        peer, bytes_of(Keyed{{Kind::keyed, 0, team.route_to(dest)}, key, buffer.bytes, op.send->token}));
    return Status::in_progress;
}

Status Messages::keyed_recv(Team& team, const memory::HostRange& buffer, std::uint32_t source,
                            const MessageKey& key, MessageInfo* info, Completion* done) {
    MessagesOfTeam& of_team = MessagesOfTeam::of(team);
    const KeyedAddress address{source, key};
    if (source >= team.peers.size() || team.destroyed || of_team.keyed_wanted.contains(address))
        return Status::invalid;
    if (team.session->closing) return Status::canceled;
    const auto stored = of_team.keyed_stored.find(address);
    const auto arrived = of_team.keyed_arrived.find(address);
    if (team.gone(source) && stored == of_team.keyed_stored.end()) {
        if (arrived != of_team.keyed_arrived.end()) of_team.keyed_arrived.erase(arrived);
        return Status::peer_lost;
    }
    MessageOp& op = new_op(team, buffer, source, true, done);
    op.info = info;
    op.key = key;
    op.keyed = true;
    if (stored != of_team.keyed_stored.end()) {
        const std::shared_ptr<StoredMessage> kept = std::move(stored->second);
        of_team.keyed_stored.erase(stored);
        receive_stored(op, kept);
        return Status::in_progress;
    }
    if (arrived == of_team.keyed_arrived.end()) {
        op.wanted = true;
        of_team.keyed_wanted.emplace(address, &op);
        return Status::in_progress;
    }
    const Announced message = std::move(arrived->second);
    of_team.keyed_arrived.erase(arrived);
    take_message(op, message);
    return Status::in_progress;
}

void Messages::keyed_cancel(Team& team, std::uint32_t source, const MessageKey& key) {
    const auto& wanted = MessagesOfTeam::of(team).keyed_wanted;
    const auto found = wanted.find({source, key});
    if (found != wanted.end()) op_over(*found->second, Status::canceled);
}

void Messages::on_keyed(Team& team, const Keyed& message) {
    MessagesOfTeam& of_team = MessagesOfTeam::of(team);
    const std::uint32_t source = message.to.route.source;
    const KeyedAddress address{source, message.key};
    const Announced announced{
        source, static_cast<std::uint32_t>(message.key.low), message.bytes, message.token, {}};
    const auto wanted = of_team.keyed_wanted.find(address);
    if (wanted != of_team.keyed_wanted.end()) {
        MessageOp& receive = *wanted->second;
        receive.wanted = false;
        of_team.keyed_wanted.erase(wanted);
        return take_message(receive, announced);
    }
    if (message.token != 0 && of_team.keyed_arrived.size() < max_waiting &&
        of_team.keyed_arrived.emplace(address, announced).second)
        return;
    log::error(Code::limit, "message {:x}.{:x} from rank {} of team {:x} is refused: {}", message.key.high,
               message.key.low, source, team.id,
               message.token == 0 ? "it names no transfer" : "its key is in use, or too many wait");
    core_.mover.finish(*team.peers[source], message.token, Status::invalid);
}

void Messages::keyed_store(Team& team, std::uint32_t dest, const MessageKey& key) {
    if (dest >= team.peers.size() || team.gone(dest)) return;
    core_.peers.tell(*team.peers[dest],
                     bytes_of(KeyedStoreRequest{{Kind::keyed_store, 0, team.route_to(dest)}, key}));
}

StoredMessage::StoredMessage(Messages& its_home, Team& its_team, const KeyedAddress& its_address,
                             std::uint64_t its_size, std::unique_ptr<std::byte[]> room)
    : home(its_home), team(its_team), address(its_address), size(its_size), bytes(std::move(room)) {
    home.stored_bytes += size;
    function = [](Completion* self, Status status) {
        auto& stored = *static_cast<StoredMessage*>(self);
        stored.home.is_stored(stored, status);
    };
}

StoredMessage::~StoredMessage() {
    home.stored_bytes -= size;
}

void Messages::on_keyed_store(Team& team, const KeyedStoreRequest& request) {
    MessagesOfTeam& of_team = MessagesOfTeam::of(team);
    const KeyedAddress address{request.to.route.source, request.key};
    const auto arrived = of_team.keyed_arrived.find(address);
    if (arrived == of_team.keyed_arrived.end() || team.session->closing || team.gone(address.source)) return;
    const Announced message = arrived->second;
    const std::uint64_t most = core_.config.stored_bytes;
    if (message.bytes == 0 || message.bytes > most - std::min(most, stored_bytes)) return;
    std::unique_ptr<std::byte[]> room(new (std::nothrow) std::byte[message.bytes]);
    if (room == nullptr) return;
    auto stored = std::make_shared<StoredMessage>(*this, team, address, message.bytes, std::move(room));
    of_team.keyed_arrived.erase(arrived);
    Peer& peer = *team.peers[address.source];
    MessageOp& storing = new_op(team, {}, address.source, true, stored.get());
    storing.kept = stored;
    if (!peer.self) storing.sender = message.token;
    storing.recv = new_recv(storing, Location::at_pointer(stored->bytes.get()), message.bytes, peer);
    of_team.keyed_stored.emplace(address, std::move(stored));
    core_.mover.grant(peer, message.token, *storing.recv);
}

// The operation that took the message in calls this, and keeps it alive during the call.
void Messages::is_stored(StoredMessage& stored, Status status) {
    stored.here = status == Status::ok;
    if (stored.receive == nullptr) {
        if (!stored.here) MessagesOfTeam::of(stored.team).keyed_stored.erase(stored.address);
        return;
    }
    MessageOp& receive = *stored.receive;
    if (receive.over) return;
    if (!stored.here) return op_over(receive, status);
    receive_stored(receive, receive.kept);
}

void Messages::receive_stored(MessageOp& receive, const std::shared_ptr<StoredMessage>& stored) {
    if (receive.info != nullptr)
        *receive.info = {stored->address.source, static_cast<std::uint32_t>(stored->address.key.low),
                         stored->size};
    if (stored->size > receive.buffer.bytes) return op_over(receive, Status::truncated);
    receive.kept = stored;
    stored->receive = &receive;
    if (!stored->here) return;
    receive.send = new_send(receive, Location::at_pointer(stored->bytes.get()), stored->size);
    core_.mover.begin_copy(*receive.send, receive.team->location(receive.buffer));
}

}  // namespace offpath::engine
