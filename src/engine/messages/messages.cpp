// What basic and keyed messages have in common: the life of an operation, and the tenant's part in a round.
#include "engine/messages/messages.h"

namespace offpath::engine {

std::unique_ptr<TeamPart> Messages::join(Team& /*team*/) {
    return std::make_unique<MessagesOfTeam>();
}

bool Messages::on_message(Team& team, std::span<const std::byte> header, std::span<const std::byte> payload,
                          Peer& /*from*/) {
    switch (kind_of(header)) {
        case Kind::request: {
            BasicRequest request;
            if (!read(header, request)) return false;
            on_request(team, request, payload);
            return true;
        }
        case Kind::keyed: {
            Keyed message;
            if (!read(header, message)) return false;
            on_keyed(team, message);
            return true;
        }
        case Kind::keyed_store: {
            KeyedStoreRequest request;
            if (!read(header, request)) return false;
            on_keyed_store(team, request);
            return true;
        }
        default:
            return false;
    }
}

MessageOp& Messages::new_op(Team& team, const memory::HostRange& buffer, std::uint32_t peer, bool receives,
                            Completion* done) {
    ++core_.counters.instances_started;
    MessageOp* op = ops_.take();
    op->home = this;
    op->team = &team;
    op->receives = receives;
    op->done = done;
    op->buffer = buffer;
    op->peer = peer;
    MessagesOfTeam::of(team).ops.push_back(*op);
    return *op;
}

SendTransfer* Messages::new_send(MessageOp& op, const Location& place, std::uint64_t bytes) {
    SendTransfer* transfer = core_.mover.new_send(*op.team->session, op, 0, place, bytes);
    transfer->may_be_cut = true;
    return transfer;
}

RecvTransfer* Messages::new_recv(MessageOp& op, const Location& place, std::uint64_t bytes, Peer& from) {
    return core_.mover.new_recv(*op.team->session, op, 0, place, bytes, from);
}

void Messages::take_message(MessageOp& receive, const Announced& message) {
    Team& team = *receive.team;
    Peer& peer = *team.peers[message.source];
    if (receive.info != nullptr) *receive.info = {message.source, message.tag, message.bytes};
    if (message.bytes > receive.buffer.bytes || message.bytes == 0) {
        if (message.token != 0) core_.mover.finish(peer, message.token, Status::ok);
        return op_over(receive, message.bytes == 0 ? Status::ok : Status::truncated);
    }
    // The announcement has arrived, but the payload never will.
    if (message.token != 0 && team.gone(message.source)) return op_over(receive, Status::peer_lost);
    receive.recv = new_recv(receive, team.location(receive.buffer), message.bytes, peer);
    if (message.token == 0) return core_.mover.take(*receive.recv, message.payload);
    if (receive.keyed && !peer.self) receive.sender = message.token;
    core_.mover.grant(peer, message.token, *receive.recv);
}

void MessageOp::moved(Status moved_with) {
    home->op_over(*this, moved_with);
}

// Called when the operation ends, and again when a transfer of an ended operation has been given back.
void Messages::op_over(MessageOp& op, Status status) {
    if (!op.over) {
        op.over = true;
        op.status = status;
        MessagesOfTeam& of_team = MessagesOfTeam::of(*op.team);
        if (op.wanted) {
            of_team.keyed_wanted.erase({op.peer, op.key});
        } else if (op.probes) {
            std::erase(of_team.probes, &op);
        } else if (op.receives) {
            of_team.matcher.cancel_receive(op.token);
        }
        op.kill(core_.mover);
    }
    if (!op.moving()) finished_.push_back(&op);
}

bool Messages::finish() {
    bool moved = false;
    while (!finished_.empty()) {
        std::vector<MessageOp*> batch;
        batch.swap(finished_);
        for (MessageOp* op : batch) {
            Team* team = op->team;
            Completion* done = op->done;
            const Status status = op->status;
            const std::uint64_t sender = op->sender;
            const std::uint32_t source = op->peer;
            MessagesOfTeam::of(*team).ops.remove(*op);
            const std::shared_ptr<StoredMessage> kept = std::move(op->kept);
            if (kept != nullptr && kept->receive == op) kept->receive = nullptr;
            ops_.give_back(op);
            (is_error(status) ? core_.counters.instances_failed : core_.counters.instances_done)++;
            if (done != nullptr) (*done)(status);
            // After the completion: if this process dies now, the host of a receive whose sender is done has
            // it.
            if (sender != 0) {
                const bool is_lost = status == Status::canceled || status == Status::peer_lost;
                core_.mover.finish(*team->peers[source], sender, is_lost ? Status::peer_lost : Status::ok);
            }
            core_.settle(*team);
        }
        moved = true;
    }
    return moved;
}

void Messages::cancel(Session& session, Status reason) {
    for (auto& team : session.teams)
        for (MessageOp* op : MessagesOfTeam::of(*team).ops.all())
            if (!op->over) op_over(*op, reason);
}

void Messages::ranks_gone(Team& team, const RanksGone& gone) {
    std::vector<MessageOp*> touched;
    const auto concerns = [&](const MessageOp& op) {
        if (op.peer == matching::any) return true;
        if (op.mask == UINT32_MAX) return gone(op.peer);
        for (std::uint32_t rank = 0; rank < team.peers.size(); ++rank)
            if (op.waits_for(rank) && gone(rank)) return true;
        return false;
    };
    for (MessageOp* op : MessagesOfTeam::of(team).ops.all()) {
        // A stored message that is here already outlives its sender.
        const bool here = op->kept != nullptr && op->kept->here;
        if (!op->over && !here && concerns(*op)) touched.push_back(op);
    }
    for (MessageOp* op : touched)
        op_over(*op, Status::peer_lost);
}

std::size_t Messages::outstanding(const Session& session) const {
    std::size_t count = 0;
    for (const auto& team : session.teams)
        count += MessagesOfTeam::of(*team).ops.size();
    return count;
}

void Messages::mark_awaited(const Session& session) const {
    for (const auto& team : session.teams) {
        const auto& ops = MessagesOfTeam::of(*team).ops;
        for (const MessageOp* op = ops.first(); op != nullptr; op = ops.after(*op)) {
            if (op->peer == matching::any || op->mask != UINT32_MAX) {
                team->mark_awaited();
                break;
            }
            Peer& peer = *team->peers[op->peer];
            peer.awaited = peer.named = true;
        }
    }
}

}  // namespace offpath::engine
