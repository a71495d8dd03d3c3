// Basic sends and receives: announced by the sender, matched at the receiver's proxy, moved while both hosts
// compute.
#include "base/log.h"
#include "engine/impl.h"

namespace offpath::engine {

BasicOp& Engine::Impl::new_basic(Team& team, const memory::HostRange& buffer, std::uint32_t peer,
                                 bool receives, Completion* done) {
    ++counters.instances_started;
    BasicOp* basic = basics.take();
    basic->team = &team;
    basic->receives = receives;
    basic->done = done;
    basic->buffer = buffer;
    basic->peer = peer;
    team.basics.insert(basic);
    return *basic;
}

Status Engine::Impl::send(Team& team, const memory::HostRange& buffer, std::uint32_t dest, std::uint32_t tag,
                          Completion* done) {
    if (dest >= team.peers.size() || tag == matching::any || team.destroyed) return Status::invalid;
    if (team.session->closing) return Status::canceled;
    Peer& peer = *team.peers[dest];
    if (team.gone(dest)) return Status::peer_lost;
    BasicOp& basic = new_basic(team, buffer, dest, false, done);
    basic.tag = tag;
    Exchange header{Kind::request, team.send_order[dest], team.route_to(dest), tag, 0, buffer.bytes, 0};
    const Location place = whole(team, buffer);
    const bool eager = !peer.self && buffer.bytes <= eager_bytes;
    if (eager && (buffer.bytes == 0 || place.pointer != nullptr ||
                  place.memory->reads_at_once(buffer, 0, buffer.bytes))) {
        std::array<std::byte, eager_bytes> copy;
        const std::byte* payload = place.pointer;
        if (payload == nullptr && buffer.bytes > 0) {
            payload = copy.data();
            if (const Status status = place.read(copy.data(), buffer.bytes, nullptr); is_error(status)) {
                basic_over(basic, status);
                return Status::in_progress;
            }
        }
        ++team.send_order[dest];
        tell(peer, bytes_of(header), {payload, buffer.bytes});
        counters.bytes_sent += buffer.bytes;
        basic_over(basic, Status::ok);
        return Status::in_progress;
    }
    ++team.send_order[dest];
    basic.send = new_send(*team.session, {Owner::Kind::basic, 0, nullptr, &basic}, place, buffer.bytes);
    basic.send->peer = &peer;
    header.token = basic.send->token;
    tell(peer, bytes_of(header));
    return Status::in_progress;
}

Status Engine::Impl::recv(Team& team, const memory::HostRange& buffer, std::uint32_t source,
                          std::uint32_t tag, MessageInfo* info, Completion* done) {
    if ((source != matching::any && source >= team.peers.size()) || team.destroyed) return Status::invalid;
    if (team.session->closing) return Status::canceled;
    BasicOp& basic = new_basic(team, buffer, source, true, done);
    basic.info = info;
    basic.tag = tag;
    if (const auto cookie = team.matcher.post({source, tag}, basic.token)) {
        auto message = team.arrived.extract(*cookie);
        give_room_back(*team.session->its_job, &team, message.mapped().payload.size());
        take_message(basic, std::move(message.mapped()));
    } else if (source != matching::any && team.gone(source)) {
        basic_over(basic, Status::peer_lost);
    }
    return Status::in_progress;
}

void Engine::Impl::on_request(Team& team, const Exchange& header, std::span<const std::byte> payload) {
    if (header.token == 0 && payload.size() != header.bytes) {
        log::warn("a request from rank {} of team {:x} was dropped: it carries {} of its {} bytes",
                  header.route.source, team.id, payload.size(), header.bytes);
        return;
    }
    auto& order = team.receive_order[header.route.source];
    const bool early = !order.is_next(header.sequence);
    if (early && !take_room(*team.session->its_job, &team, payload.size()))
        return too_far_ahead(team, header.route.source);
    auto pass = [&](EarlyMessage message) {
        if (message.header.sequence != header.sequence)
            give_room_back(*team.session->its_job, &team, message.payload.size());
        const matching::Envelope envelope{message.header.route.source,
                                          static_cast<std::uint32_t>(message.header.tag)};
        const std::uint64_t cookie = team.next_cookie++;
        if (const auto receive = team.matcher.arrive(envelope, cookie)) {
            take_message(*basics.find(*receive), std::move(message));
        } else if (!take_room(*team.session->its_job, &team, message.payload.size())) {
            too_far_ahead(team, message.header.route.source);
        } else {
            team.arrived.emplace(cookie, std::move(message));
        }
    };
    const bool fresh =
        order.arrive(header.sequence, EarlyMessage{header, {payload.begin(), payload.end()}, nullptr}, pass);
    if (early && !fresh) give_room_back(*team.session->its_job, &team, payload.size());
}

void Engine::Impl::take_message(BasicOp& receive, EarlyMessage message) {
    Team& team = *receive.team;
    const Exchange& header = message.header;
    Peer& peer = *team.peers[header.route.source];
    if (receive.info != nullptr)
        *receive.info = {header.route.source, static_cast<std::uint32_t>(header.tag), header.bytes};
    if (header.bytes > receive.buffer.bytes || header.bytes == 0) {
        if (header.token != 0) {
            const Finished answer{Kind::finished, static_cast<std::int32_t>(Status::ok), header.token};
            tell(peer, bytes_of(answer));
        }
        return basic_over(receive, header.bytes == 0 ? Status::ok : Status::truncated);
    }
    // Its announcement is here, its payload will never be.
    if (header.token != 0 && team.gone(header.route.source)) return basic_over(receive, Status::peer_lost);
    receive.recv = new_recv(*team.session, {Owner::Kind::basic, 0, nullptr, &receive},
                            whole(team, receive.buffer), header.bytes, peer);
    if (header.token == 0) {
        const std::uint64_t token = receive.recv->token;
        if (!store(*receive.recv, 0, message.payload))
            held.push_back({token, 0, message.payload.size(), nullptr, std::move(message.payload)});
        return;
    }
    const Grant grant{Kind::grant, static_cast<std::uint32_t>(config.chunk_bytes), header.token,
                      receive.recv->token, header.bytes};
    tell(peer, bytes_of(grant));
}

// The operation has ended, or one of its transfers has been given back after that.
void Engine::Impl::basic_over(BasicOp& basic, Status status) {
    if (!basic.over) {
        basic.over = true;
        basic.status = status;
        if (basic.wanted) {
            basic.team->mail_wanted.erase({basic.peer, basic.key});
        } else if (basic.receives) {
            basic.team->matcher.cancel_receive(basic.token);
        }
        if (SendTransfer* send = basic.send) {
            kill(send);
            return;
        }
        if (RecvTransfer* recv = basic.recv) {
            kill(recv);
            return;
        }
    }
    if (basic.send == nullptr && basic.recv == nullptr) finished_basics.push_back(&basic);
}

void Engine::Impl::cancel_basics(Team& team, Status status) {
    const std::vector<BasicOp*> all(team.basics.begin(), team.basics.end());
    for (BasicOp* basic : all) {
        if (!basic->over) basic_over(*basic, status);
    }
}

}  // namespace offpath::engine
