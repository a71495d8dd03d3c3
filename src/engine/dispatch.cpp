// Dispatch: which part of the engine gets a message, by its kind.
#include "base/log.h"
#include "engine/impl.h"

#include <cstring>

namespace offpath::engine {

Tenant* Engine::Impl::tenant_of(Kind kind) {
    switch (kind) {
        case Kind::eager:
        case Kind::ready:
        case Kind::signal:
        case Kind::arrived:
        case Kind::abort:
            return &schedules;
        case Kind::request:
        case Kind::keyed:
        case Kind::keyed_store:
            return &messages;
        case Kind::one_sided:
            return &one_sided;
        default:
            return nullptr;
    }
}

void Engine::Impl::dispatch(std::span<const std::byte> header, const transport::Incoming* incoming,
                            Peer& from) {
    const Kind kind = kind_of(header);
    // Operations of that proxy's ranks have ended here with an error. A message that comes after that must
    // not become the result of a later operation.
    if (from.lost && kind != Kind::beat) {
        if (incoming != nullptr && incoming->rendezvous != nullptr) transport.discard(incoming->rendezvous);
        return;
    }
    from.has_sent();
    switch (kind) {
        case Kind::chunk:
        case Kind::grant:
        case Kind::finished:
        case Kind::broken:
            if (kind != Kind::chunk && incoming != nullptr && incoming->rendezvous != nullptr) break;
            if (mover.on_message(header, incoming, from)) return;
            break;
        case Kind::one_sided_bundle:
        case Kind::one_sided_answer:
            if (incoming != nullptr && one_sided.take(header, *incoming, from)) return;
            break;
        case Kind::hello: {
            PeerHello hello;
            if (read(header, hello) && (incoming == nullptr || incoming->rendezvous == nullptr)) return;
            break;
        }
        case Kind::beat: {
            Beat beat;
            if (incoming != nullptr && incoming->rendezvous != nullptr) break;
            if (read(header, beat)) return peers.on_beat(beat, from);
            break;
        }
        case Kind::rank_gone: {
            RankGone gone;
            if (incoming != nullptr && incoming->rendezvous != nullptr) break;
            if (read(header, gone)) return on_rank_gone(gone, from);
            break;
        }
        default: {
            if (tenant_of(kind) == nullptr || header.size() < sizeof(Routed)) break;
            if (incoming != nullptr && incoming->rendezvous != nullptr) break;
            std::span<const std::byte> payload;
            if (incoming != nullptr) payload = {incoming->data, incoming->bytes};
            return deliver(header, payload, from);
        }
    }
    dropped(header, incoming);
}

void Engine::Impl::dropped(std::span<const std::byte> header, const transport::Incoming* incoming) {
    if (incoming != nullptr && incoming->rendezvous != nullptr) transport.discard(incoming->rendezvous);
    log::warn(Code::malformed, "a malformed message between proxies was dropped: kind {}, header of {} bytes",
              static_cast<std::uint32_t>(kind_of(header)), header.size());
}

void Engine::Impl::deliver(std::span<const std::byte> header, std::span<const std::byte> payload,
                           Peer& from) {
    Tenant* const tenant = tenant_of(kind_of(header));
    Routed routed{};
    if (tenant == nullptr || header.size() < sizeof routed) return dropped(header, nullptr);
    std::memcpy(&routed, header.data(), sizeof routed);
    const Route& route = routed.route;
    const JobId job{route.job_high, route.job_low};
    if (!from.self && job != from.job) return peers.refuse("a message for another job", &from);
    const TeamKey key{route.job_high, route.job_low, route.team, route.dest};
    const auto found = teams.find(key);
    if (found == teams.end()) {
        // All ranks of a team create a window before any of them uses it. So the message is not early, and
        // its team is missing.
        if (routed.kind == Kind::one_sided)
            return peers.refuse("an operation on a window of a team that is not here", &from);
        Job* const known = peers.find_job(job);
        if (known == nullptr || !take_room(*known, nullptr, payload.size()))
            return peers.refuse("a message for a team that nobody has made", &from);
        orphans[key].push_back({{header.begin(), header.end()}, {payload.begin(), payload.end()}, &from});
        return;
    }
    Team& team = *found->second;
    if (route.source >= team.peers.size()) {
        log::warn(Code::malformed, "a message from rank {} of team {:x}, which has {} ranks, was dropped",
                  route.source, team.id, team.peers.size());
        return;
    }
    if (team.peers[route.source] != &from)
        return peers.refuse("a message in the name of a rank of another proxy", &from);
    if (!tenant->on_message(team, header, payload, from)) dropped(header, nullptr);
}

void Engine::Impl::on_rank_gone(const RankGone& gone, const Peer& from) {
    const JobId job{gone.job_high, gone.job_low};
    if (!from.self && job != from.job) return peers.refuse("a message for another job", &from);
    for (auto& session : sessions)
        if (session->job == job && session->job_rank != gone.job_rank)
            rank_gone(*session, gone.job_rank, from);
}

}  // namespace offpath::engine
