// Other proxies: how they are found, reached and given up.
#include "base/log.h"
#include "engine/onesided.h"

namespace offpath::engine {
namespace {

// Of a larger job, most pairs never exchange anything.
constexpr std::size_t most_greeted = 64;

}  // namespace

Status Engine::add_proxy(Session& session, ProxyId proxy, std::span<const std::byte> address) {
    if (proxy == 0) return Status::invalid;
    Peer* known = impl_->find_peer(proxy);
    if (known == nullptr) {
        auto peer = std::make_unique<Peer>();
        peer->id = proxy;
        peer->address.assign(address.begin(), address.end());
        known = peer.get();
        impl_->peers.emplace(proxy, std::move(peer));
    } else if (!known->self &&
               !std::equal(known->address.begin(), known->address.end(), address.begin(), address.end())) {
        log::error("proxy {:x} was announced with two different addresses", proxy);
        return Status::invalid;
    }
    session.acquaintances.insert(known);
    return Status::ok;
}

void Engine::greet(const Session& session) {
    if (session.acquaintances.size() > most_greeted) return;
    for (Peer* peer : session.acquaintances)
        if (!peer->self && !peer->lost && peer->endpoint == nullptr)
            impl_->tell(*peer, bytes_of(Hello{Kind::hello, 0}));
}

Peer* Engine::Impl::find_peer(ProxyId id) {
    auto it = peers.find(id);
    return it == peers.end() ? nullptr : it->second.get();
}

bool Engine::Impl::connect(Peer& peer) {
    if (peer.lost) return false;
    if (peer.endpoint != nullptr) return true;
    const Status status = transport.connect(peer.address, &peer.endpoint);
    if (status == Status::ok) return true;
    log::error("proxy {:x} cannot be reached: {}", peer.id, to_string(status));
    peer.lost = true;
    newly_lost.push_back(&peer);
    return false;
}

void Engine::Impl::tell(Peer& peer, std::span<const std::byte> header, std::span<const std::byte> payload) {
    if (closed) return;
    if (peer.self) {
        LocalMessage message;
        std::copy(header.begin(), header.end(), message.bytes.begin());
        message.size = header.size();
        local_messages.push_back(message);
        return;
    }
    if (!connect(peer)) return;
    ++counters.messages_sent;
    const Status status = transport.post(*peer.endpoint, header, payload);
    if (is_error(status)) not_sent(peer, status);
}

void Engine::Impl::not_sent(Peer& peer, Status status) {
    log::error("a message to proxy {:x} failed: {}", peer.id, to_string(status));
    peer.lost = true;
    newly_lost.push_back(&peer);
}

void Engine::on_endpoint_lost(transport::Endpoint& endpoint) {
    for (auto& [id, peer] : impl_->peers) {
        if (peer->endpoint == &endpoint) impl_->peer_lost(*peer);
    }
}

void Engine::Impl::peer_lost(Peer& peer) {
    if (!peer.lost) log::error("proxy {:x} was lost", peer.id);
    peer.lost = true;
    for (auto& session : sessions) {
        for (auto& team : session->teams) {
            fail_where(*team, [&](std::uint32_t rank) { return team->peers[rank] == &peer; });
        }
    }
}

bool Team::mark_gone(std::uint32_t job_rank) {
    const auto it = std::find(job_ranks.begin(), job_ranks.end(), job_rank);
    if (it == job_ranks.end()) return false;
    left.resize(peers.size(), false);
    left[static_cast<std::size_t>(it - job_ranks.begin())] = true;
    return true;
}

void Engine::Impl::rank_gone(Session& session, std::uint32_t job_rank) {
    session.gone.insert(job_rank);
    for (auto& team : session.teams) {
        if (!team->mark_gone(job_rank)) continue;
        fail_where(*team, [&](std::uint32_t rank) { return team->job_ranks[rank] == job_rank; });
    }
}

// Ends what cannot be done any more without the ranks for which `gone` holds: every instance of the team, for
// a schedule involves all of its ranks, and the basic operations with those ranks.
void Engine::Impl::fail_where(Team& team, const std::function<bool(std::uint32_t rank)>& gone) {
    bool member = false;
    for (std::uint32_t rank = 0; rank < team.peers.size(); ++rank)
        member |= gone(rank);
    if (!member) return;
    std::vector<Instance*> running;
    running.reserve(team.instances.size());
    for (auto& [sequence, instance] : team.instances)
        running.push_back(instance.get());
    for (Instance* instance : running)
        fail(*instance, Status::peer_lost, true);
    std::vector<BasicOp*> touched;
    for (BasicOp* basic : team.basics) {
        // What is here already outlives its sender.
        const bool here = basic->kept != nullptr && basic->kept->here;
        if (!basic->over && !here && (basic->peer == matching::any || gone(basic->peer)))
            touched.push_back(basic);
    }
    for (BasicOp* basic : touched)
        basic_over(*basic, Status::peer_lost);
    one_sided->fail_where(team, gone);
}

}  // namespace offpath::engine
