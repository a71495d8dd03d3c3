// Mail: messages that meet their receive by a key, which both hosts derive from what they know. Nothing is
// ordered or matched here, so a receive may be there long before its message, and the payload moves while
// both hosts compute.
#include "base/log.h"
#include "engine/impl.h"

namespace offpath::engine {
namespace {

// Announced and not yet received, from one team: more than this means that somebody has gone wrong.
constexpr std::size_t max_waiting = 1 << 20;

bool is_gone(const Team& team, std::uint32_t rank) {
    return team.peers[rank]->lost || (!team.left.empty() && team.left[rank]);
}

}  // namespace

Status Engine::Impl::mail_send(Team& team, const memory::HostRange& buffer, std::uint32_t dest,
                               const MailKey& key, Completion* done) {
    if (dest >= team.peers.size() || team.destroyed) return Status::invalid;
    if (team.session->closing) return Status::canceled;
    if (is_gone(team, dest)) return Status::peer_lost;
    Peer& peer = *team.peers[dest];
    ++counters.instances_started;
    BasicOp* mail = basics.take();
    mail->team = &team;
    mail->done = done;
    mail->buffer = buffer;
    mail->peer = dest;
    team.basics.insert(mail);
    mail->send =
        new_send(*team.session, {Owner::Kind::basic, 0, nullptr, mail}, whole(team, buffer), buffer.bytes);
    mail->send->peer = &peer;
    const Exchange header{Kind::mail,       0, team.route_to(dest), key.low, key.high, buffer.bytes,
                          mail->send->token};
    tell(peer, bytes_of(header));
    return Status::in_progress;
}

Status Engine::Impl::mail_recv(Team& team, const memory::HostRange& buffer, std::uint32_t source,
                               const MailKey& key, MessageInfo* info, Completion* done) {
    const MailAddress address{source, key};
    if (source >= team.peers.size() || team.destroyed || team.mail_wanted.contains(address))
        return Status::invalid;
    if (team.session->closing) return Status::canceled;
    const auto arrived = team.mail_arrived.find(address);
    if (is_gone(team, source)) {
        if (arrived != team.mail_arrived.end()) team.mail_arrived.erase(arrived);
        return Status::peer_lost;
    }
    ++counters.instances_started;
    BasicOp* mail = basics.take();
    mail->team = &team;
    mail->receives = true;
    mail->done = done;
    mail->info = info;
    mail->buffer = buffer;
    mail->peer = source;
    mail->key = key;
    team.basics.insert(mail);
    if (arrived == team.mail_arrived.end()) {
        mail->wanted = true;
        team.mail_wanted.emplace(address, mail);
        return Status::in_progress;
    }
    const Exchange header = arrived->second;
    team.mail_arrived.erase(arrived);
    take_message(*mail, {header, {}});
    return Status::in_progress;
}

void Engine::Impl::mail_cancel(Team& team, std::uint32_t source, const MailKey& key) {
    const auto found = team.mail_wanted.find({source, key});
    if (found != team.mail_wanted.end()) basic_over(*found->second, Status::canceled);
}

void Engine::Impl::on_mail(Team& team, const Exchange& header) {
    const MailAddress address{header.route.source, {header.offset, header.tag}};
    const auto wanted = team.mail_wanted.find(address);
    if (wanted != team.mail_wanted.end()) {
        BasicOp& receive = *wanted->second;
        receive.wanted = false;
        team.mail_wanted.erase(wanted);
        return take_message(receive, {header, {}});
    }
    if (header.token != 0 && team.mail_arrived.size() < max_waiting &&
        team.mail_arrived.emplace(address, header).second)
        return;
    log::error("mail {:x}.{:x} from rank {} of team {:x} is refused: {}", header.offset, header.tag,
               header.route.source, team.id,
               header.token == 0 ? "it names no transfer" : "its key is in use, or too many wait");
    const Finished answer{Kind::finished, static_cast<std::int32_t>(Status::invalid), header.token};
    tell(*team.peers[header.route.source], bytes_of(answer));
}

}  // namespace offpath::engine
