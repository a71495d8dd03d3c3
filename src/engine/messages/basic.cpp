// Basic sends and receives. The sender announces a message, and the receiver's engine matches it.
#include "base/log.h"
#include "engine/messages/messages.h"

#include <array>

namespace offpath::engine {

Status Messages::send(Team& team, const memory::HostRange& buffer, std::uint32_t dest, std::uint32_t tag,
                      Completion* done) {
    if (dest >= team.peers.size() || tag == matching::any || team.destroyed) return Status::invalid;
    if (team.session->closing) return Status::canceled;
    Peer& peer = *team.peers[dest];
    if (team.gone(dest)) return Status::peer_lost;
    MessageOp& op = new_op(team, buffer, dest, false, done);
    op.tag = tag;
    std::uint32_t& order = MessagesOfTeam::of(team).send_order[dest];
    BasicRequest header{{Kind::request, order, team.route_to(dest)}, tag, buffer.bytes, 0};
    const Location place = team.location(buffer);
    const bool eager = !peer.self && buffer.bytes <= eager_bytes;
    if (eager && (buffer.bytes == 0 || place.pointer != nullptr ||
                  place.memory->reads_at_once(buffer, 0, buffer.bytes))) {
        std::array<std::byte, eager_bytes> copy;
        const std::byte* payload = place.pointer;
        if (payload == nullptr && buffer.bytes > 0) {
            payload = copy.data();
            if (const Status status = place.read(copy.data(), buffer.bytes, nullptr); is_error(status)) {
                op_over(op, status);
                return Status::in_progress;
            }
        }
        ++order;
        core_.peers.tell(peer, bytes_of(header), {payload, buffer.bytes});
        core_.counters.bytes_sent += buffer.bytes;
        op_over(op, Status::ok);
        return Status::in_progress;
    }
    ++order;
    op.send = new_send(op, place, buffer.bytes);
    op.send->peer = &peer;
    header.token = op.send->token;
    core_.peers.tell(peer, bytes_of(header));
    return Status::in_progress;
}

namespace {

bool is_possible(const Team& team, matching::Envelope wanted) {
    return (wanted.source == matching::any || wanted.source < team.peers.size()) && !team.destroyed;
}

// Whether the only rank that it names, or one of several, is gone.
bool names_gone(const Team& team, const MessageOp& op) {
    if (op.peer == matching::any) return false;
    if (op.mask == UINT32_MAX) return team.gone(op.peer);
    for (std::uint32_t rank = 0; rank < team.peers.size(); ++rank)
        if (op.waits_for(rank) && team.gone(rank)) return true;
    return false;
}

}  // namespace

Status Messages::recv(Team& team, const memory::HostRange& buffer, matching::Envelope wanted,
                      MessageInfo* info, Completion* done) {
    if (!is_possible(team, wanted)) return Status::invalid;
    if (team.session->closing) return Status::canceled;
    MessagesOfTeam& of_team = MessagesOfTeam::of(team);
    MessageOp& op = new_op(team, buffer, wanted.source, true, done);
    op.info = info;
    op.tag = wanted.tag;
    op.mask = wanted.mask;
    if (const auto cookie = of_team.matcher.post(wanted, op.token)) {
        const auto message = of_team.arrived.extract(*cookie);
        core_.give_room_back(*team.session->its_job, &team, message.mapped().payload.size());
        take_message(op, message.mapped());
    } else if (names_gone(team, op)) {
        op_over(op, Status::peer_lost);
    }
    return Status::in_progress;
}

Status Messages::probe(Team& team, matching::Envelope wanted, bool waits, MessageInfo* info,
                       Completion* done) {
    if (!is_possible(team, wanted)) return Status::invalid;
    if (team.session->closing) return Status::canceled;
    MessagesOfTeam& of_team = MessagesOfTeam::of(team);
    MessageOp& op = new_op(team, {}, wanted.source, true, done);
    op.probes = true;
    op.info = info;
    op.tag = wanted.tag;
    op.mask = wanted.mask;
    if (const auto cookie = of_team.matcher.peek(wanted)) {
        const Announced& message = of_team.arrived.at(*cookie);
        if (info != nullptr) *info = {message.source, message.tag, message.bytes};
        op_over(op, Status::ok);
    } else if (names_gone(team, op)) {
        op_over(op, Status::peer_lost);
    } else if (waits) {
        of_team.probes.push_back(&op);
    } else {
        op_over(op, Status::canceled);
    }
    return Status::in_progress;
}

void Messages::tell_probes(MessagesOfTeam& of_team, const Announced& message) {
    std::vector<MessageOp*> told;
    for (MessageOp* op : of_team.probes)
        if (matching::Matcher::matches(op->envelope(), {message.source, message.tag})) told.push_back(op);
    for (MessageOp* op : told) {
        if (op->info != nullptr) *op->info = {message.source, message.tag, message.bytes};
        op_over(*op, Status::ok);
    }
}

void Messages::on_request(Team& team, const BasicRequest& request, std::span<const std::byte> payload) {
    const std::uint32_t source = request.to.route.source, sequence = request.to.sequence;
    if (request.token == 0 && payload.size() != request.bytes) {
        log::warn(Code::malformed,
                  "a request from rank {} of team {:x} was dropped: it carries {} of its {} bytes", source,
                  team.id, payload.size(), request.bytes);
        return;
    }
    MessagesOfTeam& of_team = MessagesOfTeam::of(team);
    Job& job = *team.session->its_job;
    auto& order = of_team.receive_order[source];
    const bool early = !order.is_next(sequence);
    if (early && !core_.take_room(job, &team, payload.size())) return core_.too_far_ahead(team, source);
    // The first message to pass is this one. Those that pass behind it were kept until now.
    bool was_kept = false;
    const auto pass = [&](Announced message) {
        if (was_kept) core_.give_room_back(job, &team, message.payload.size());
        was_kept = true;
        const std::uint64_t cookie = of_team.next_cookie++;
        if (const auto receive = of_team.matcher.arrive({message.source, message.tag}, cookie)) {
            take_message(*ops_.find(*receive), message);
        } else if (!core_.take_room(job, &team, message.payload.size())) {
            core_.too_far_ahead(team, message.source);
        } else {
            if (!of_team.probes.empty()) tell_probes(of_team, message);
            of_team.arrived.emplace(cookie, std::move(message));
        }
    };
    Announced announced{source,
                        static_cast<std::uint32_t>(request.tag),
                        request.bytes,
                        request.token,
                        {payload.begin(), payload.end()}};
    const bool fresh = order.arrive(sequence, std::move(announced), pass);
    if (early && !fresh) core_.give_room_back(job, &team, payload.size());
}

}  // namespace offpath::engine
