// Mail: messages that meet their receive by a key, which both hosts derive from what they know. Nothing is
// ordered or matched here, so a receive may be there long before its message, and the payload moves while
// both hosts compute.
#include "base/log.h"
#include "engine/impl.h"

#include <new>

namespace offpath::engine {
namespace {

// Announced and not yet received, from one team: more than this means that somebody has gone wrong.
constexpr std::size_t max_waiting = 1 << 20;

}  // namespace

Status Engine::Impl::mail_send(Team& team, const memory::HostRange& buffer, std::uint32_t dest,
                               const MailKey& key, Completion* done) {
    if (dest >= team.peers.size() || team.destroyed) return Status::invalid;
    if (team.session->closing) return Status::canceled;
    if (team.gone(dest)) return Status::peer_lost;
    Peer& peer = *team.peers[dest];
    BasicOp& mail = new_basic(team, buffer, dest, false, done);
    mail.send =
        new_send(*team.session, {Owner::Kind::basic, 0, nullptr, &mail}, whole(team, buffer), buffer.bytes);
    mail.send->peer = &peer;
    const Exchange header{Kind::mail,      0, team.route_to(dest), key.low, key.high, buffer.bytes,
                          mail.send->token};
    tell(peer, bytes_of(header));
    return Status::in_progress;
}

Status Engine::Impl::mail_recv(Team& team, const memory::HostRange& buffer, std::uint32_t source,
                               const MailKey& key, MessageInfo* info, Completion* done) {
    const MailAddress address{source, key};
    if (source >= team.peers.size() || team.destroyed || team.mail_wanted.contains(address))
        return Status::invalid;
    if (team.session->closing) return Status::canceled;
    const auto stored = team.mail_stored.find(address);
    const auto arrived = team.mail_arrived.find(address);
    if (team.gone(source) && stored == team.mail_stored.end()) {
        if (arrived != team.mail_arrived.end()) team.mail_arrived.erase(arrived);
        return Status::peer_lost;
    }
    BasicOp& mail = new_basic(team, buffer, source, true, done);
    mail.info = info;
    mail.key = key;
    if (stored != team.mail_stored.end()) {
        const std::shared_ptr<StoredMail> kept = std::move(stored->second);
        team.mail_stored.erase(stored);
        receive_stored(mail, kept);
        return Status::in_progress;
    }
    if (arrived == team.mail_arrived.end()) {
        mail.wanted = true;
        team.mail_wanted.emplace(address, &mail);
        return Status::in_progress;
    }
    const Exchange header = arrived->second;
    team.mail_arrived.erase(arrived);
    take_message(mail, {header, {}, nullptr});
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
        return take_message(receive, {header, {}, nullptr});
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

void Engine::Impl::mail_store(Team& team, std::uint32_t dest, const MailKey& key) {
    if (dest >= team.peers.size() || team.gone(dest)) return;
    const Exchange header{Kind::mail_store, 0, team.route_to(dest), key.low, key.high, 0, 0};
    tell(*team.peers[dest], bytes_of(header));
}

StoredMail::StoredMail(Engine::Impl& impl, Team& its_team, const Exchange& announced,
                       std::unique_ptr<std::byte[]> room)
    : engine(impl), team(its_team), header(announced), bytes(std::move(room)) {
    engine.stored_bytes += header.bytes;
    function = [](Completion* self, Status status) {
        auto& stored = *static_cast<StoredMail*>(self);
        stored.engine.mail_is_stored(stored, status);
    };
}

StoredMail::~StoredMail() {
    engine.stored_bytes -= header.bytes;
}

void Engine::Impl::on_mail_store(Team& team, const Exchange& request) {
    const MailAddress address{request.route.source, {request.offset, request.tag}};
    const auto arrived = team.mail_arrived.find(address);
    if (arrived == team.mail_arrived.end() || team.session->closing || team.gone(address.source)) return;
    const Exchange header = arrived->second;
    if (header.bytes == 0 || header.bytes > config.stored_bytes - std::min(config.stored_bytes, stored_bytes))
        return;
    std::unique_ptr<std::byte[]> room(new (std::nothrow) std::byte[header.bytes]);
    if (room == nullptr) return;
    auto stored = std::make_shared<StoredMail>(*this, team, header, std::move(room));
    team.mail_arrived.erase(arrived);
    BasicOp& storing = new_basic(team, {}, address.source, true, stored.get());
    storing.kept = stored;
    Location place;
    place.pointer = stored->bytes.get();
    storing.recv = new_recv(*team.session, {Owner::Kind::basic, 0, nullptr, &storing}, place, header.bytes,
                            *team.peers[address.source]);
    const Grant grant{Kind::grant, static_cast<std::uint32_t>(config.chunk_bytes), header.token,
                      storing.recv->token, header.bytes};
    team.mail_stored.emplace(address, std::move(stored));
    tell(*team.peers[address.source], bytes_of(grant));
}

// Called by the operation that took it in, which keeps it meanwhile.
void Engine::Impl::mail_is_stored(StoredMail& stored, Status status) {
    stored.here = status == Status::ok;
    if (stored.receive == nullptr) {
        if (!stored.here)
            stored.team.mail_stored.erase(
                {stored.header.route.source, {stored.header.offset, stored.header.tag}});
        return;
    }
    BasicOp& receive = *stored.receive;
    if (receive.over) return;
    if (!stored.here) return basic_over(receive, status);
    receive_stored(receive, receive.kept);
}

void Engine::Impl::receive_stored(BasicOp& receive, const std::shared_ptr<StoredMail>& stored) {
    const Exchange& header = stored->header;
    if (receive.info != nullptr)
        *receive.info = {header.route.source, static_cast<std::uint32_t>(header.tag), header.bytes};
    if (header.bytes > receive.buffer.bytes) return basic_over(receive, Status::truncated);
    receive.kept = stored;
    stored->receive = &receive;
    if (!stored->here) return;
    Location from;
    from.pointer = stored->bytes.get();
    receive.send =
        new_send(*receive.team->session, {Owner::Kind::basic, 0, nullptr, &receive}, from, header.bytes);
    receive.send->local = true;
    receive.send->copy_to = whole(*receive.team, receive.buffer);
    begin(*receive.send);
}

}  // namespace offpath::engine
