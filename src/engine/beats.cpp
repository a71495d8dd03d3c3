// Signs of life between proxies. A connection says that the other side's system is there, at best; a proxy
// that is stopped, or a link that is cut while only the other side has something to send, breaks no
// connection. So an engine asks the proxies that its operations depend on, and each engine answers.
#include "base/log.h"
#include "engine/onesided.h"

#include <fmt/format.h>

namespace offpath::engine {
namespace {

// Of the limit: what passes between two rounds counts up to this.
constexpr std::uint64_t most_shares = 4;
constexpr std::uint64_t long_silence_ns = UINT64_MAX / 2;

}  // namespace

bool Engine::awaits_others() const {
    for (const auto& session : impl_->sessions)
        if (session->acquaintances.size() > 1 && outstanding(*session) > 0) return true;
    return false;
}

// Those with an endpoint: with others nothing has been exchanged yet.
void Engine::Impl::mark_awaited() {
    for (auto& [id, peer] : peers)
        peer->awaited = false;
    const auto mark_all = [](const Team& team) {
        for (Peer* peer : team.peers)
            peer->awaited = true;
    };
    for (auto& session : sessions) {
        const bool one_sided_calls = one_sided->outstanding(*session) > 0;
        for (auto& team : session->teams) {
            if (one_sided_calls || !team->instances.empty()) {
                mark_all(*team);
                continue;
            }
            for (const BasicOp* basic : team->basics) {
                if (basic->peer == matching::any) {
                    mark_all(*team);
                    break;
                }
                team->peers[basic->peer]->awaited = true;
            }
        }
    }
}

void Engine::beat(std::uint64_t now_ns, std::uint64_t limit_ns) {
    Impl& impl = *impl_;
    const std::uint64_t passed_ns = std::min(now_ns - impl.beaten_ns, limit_ns / most_shares);
    impl.beaten_ns = now_ns;
    impl.mark_awaited();
    for (auto& [id, peer] : impl.peers) {
        if (peer->self || peer->lost || peer->endpoint == nullptr || !peer->awaited) {
            peer->asked = false;
            continue;
        }
        if (!peer->asked) {
            peer->asked = true;
            peer->silent_ns = 0;
            impl.tell(*peer, bytes_of(Beat{Kind::beat, BeatWord::question, impl.self}));
            continue;
        }
        peer->silent_ns += passed_ns;
        if (peer->has_answered && peer->silent_ns >= limit_ns) impl.give_up_silent(*peer);
    }
}

void Engine::Impl::on_beat(const Beat& beat) {
    Peer* const peer = find_peer(beat.proxy);
    if (peer == nullptr || peer->self) return;
    switch (beat.word) {
        case BeatWord::question:
            // One that was given up is told so, by a way of its own, which ends with it.
            if (!peer->lost) return tell(*peer, bytes_of(Beat{Kind::beat, BeatWord::answer, self}));
            if (peer->endpoint == nullptr && transport.connect(peer->address, &peer->endpoint) == Status::ok)
                (void)transport.post(*peer->endpoint, bytes_of(Beat{Kind::beat, BeatWord::farewell, self}),
                                     {});
            return;
        case BeatWord::answer:
            peer->has_answered = true;
            peer->asked = false;
            return;
        case BeatWord::farewell:
            // The next round acts on it: an endpoint is not closed from within the transport.
            peer->has_answered = peer->asked = true;
            peer->silent_ns = long_silence_ns;
            return;
    }
}

// What is on its way to it would wait for as long as its system lives: the endpoint goes, and ends that.
void Engine::Impl::give_up_silent(Peer& peer) {
    if (peer.silent_ns >= long_silence_ns) {
        log::error("proxy {:x} was lost: it says that this one was silent for too long", peer.id);
    } else {
        log::error("proxy {:x} was lost: no answer for {:.1f} s", peer.id,
                   static_cast<double>(peer.silent_ns) * 1e-9);
    }
    peer.lost = true;
    if (peer.endpoint != nullptr) transport.disconnect(std::exchange(peer.endpoint, nullptr));
    newly_lost.push_back(&peer);
}

}  // namespace offpath::engine
