// Signs of life between proxies. At best, a connection shows that the other side's operating system is there.
// It does not break when the other proxy is stopped, or when a link is cut while only the other side has
// something to send. So an engine asks the proxies that its operations depend on, and each engine answers.
#include "base/log.h"
#include "base/log_silence.h"
#include "engine/mover/peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace offpath::engine {
namespace {

// The time between two rounds of beats counts for at most a quarter of the limit.
constexpr std::uint64_t most_shares = 4;
constexpr std::uint64_t long_silence_ns = UINT64_MAX / 2;

}  // namespace

// In a large job, this engine may have exchanged nothing yet with the proxy of a rank from which a rank here
// receives. A connection tells whether that proxy is there.
void Peers::probe_named(std::uint64_t passed_ns, std::uint64_t limit_ns) {
    for (transport::Endpoint* endpoint : std::exchange(retired_, {}))
        transport_.disconnect(endpoint);
    for (auto& [hash, way] : ways_)
        if (way.failed || way.failing_ns > 0) way.failing_ns += passed_ns;
    each_peer([&](Peer& peer) {
        if (peer.named && !peer.self && !peer.lost && peer.way != nullptr && !peer.way->lost)
            probe(peer, limit_ns);
    });
}

// No operation depends on this connection yet. So a failed attempt is repeated until the limit, because the
// link may be back by then.
void Peers::probe(Peer& peer, std::uint64_t limit_ns) {
    Way& way = *peer.way;
    if (way.endpoint != nullptr && !way.failed) return;
    if (way.failed && way.failing_ns >= limit_ns) {
        log::error(Code::device_lost, "proxy {:x} was lost: it cannot be reached for {:.1f} s", peer.id,
                   static_cast<double>(way.failing_ns) * 1e-9);
        peer.lost = way.given_up = true;
        newly_lost_.push_back(&peer);
        return;
    }
    if (way.endpoint != nullptr) transport_.disconnect(std::exchange(way.endpoint, nullptr));
    const log::Silence until_the_limit;
    way.failed = transport_.connect(way.address_bytes(), &way.endpoint) != Status::ok;
    way.probing = !way.failed;
    if (way.probing)
        say(way, peer.pass_there, bytes_of(PeerHello{Kind::hello, 0, peer.job.high, peer.job.low}));
}

// The silence of one job says nothing about the others, because any process that knows that job's secret can
// feign it. A connection that jobs share ends when it brings no answer for any of them. So once an operation
// waits for a peer, or a peer was given up, the other peers on its connection are asked too.
void Peers::beat(std::uint64_t now_ns, std::uint64_t limit_ns, const std::function<void()>& mark_awaited) {
    const std::uint64_t passed_ns = std::min(now_ns - beaten_ns_, limit_ns / most_shares);
    beaten_ns_ = now_ns;
    each_peer([](Peer& peer) { peer.awaited = peer.named = false; });
    mark_awaited();
    for (auto& [hash, way] : ways_)
        way.doubted = way.given_up = false;
    probe_named(passed_ns, limit_ns);
    each_peer([](Peer& peer) {
        if (peer.endpoint() == nullptr) return;
        peer.way->doubted |= peer.awaited || peer.lost;
        peer.way->given_up |= peer.lost;
    });
    each_peer([&](Peer& peer) { ask(peer, passed_ns, limit_ns); });
    for (auto& [hash, way] : ways_)
        way.answers = false;
    each_peer([&](const Peer& peer) {
        const bool silent = peer.lost || (peer.asked && peer.silent_ns >= limit_ns);
        if (peer.way != nullptr && !silent) peer.way->answers = true;
    });
    for (auto& [hash, way] : ways_)
        if (way.given_up && !way.answers && !way.lost) give_up_way(way);
}

void Peers::ask(Peer& peer, std::uint64_t passed_ns, std::uint64_t limit_ns) {
    if (peer.lost || peer.endpoint() == nullptr || peer.way->failed || !peer.way->doubted) {
        peer.asked = false;
        return;
    }
    if (peer.asked) {
        peer.silent_ns += passed_ns;
    } else {
        peer.silent_ns = 0;
    }
    // A peer that has never answered may not have known this proxy when it was asked. So it is asked again,
    // and given up only if it has shown that it knows this proxy.
    if (!peer.asked || !peer.has_answered) {
        const Beat question{Kind::beat, BeatWord::question, peer.job.high, peer.job.low};
        peer.way->probing ? say(*peer.way, peer.pass_there, bytes_of(question))
                          : tell(peer, bytes_of(question));
    }
    peer.asked = true;
    if (peer.awaited && peer.knows_us && peer.silent_ns >= limit_ns) give_up_silent(peer);
}

void Peers::on_beat(const Beat& beat, Peer& from) {
    if (from.self || from.way == nullptr) return;
    switch (beat.word) {
        case BeatWord::question:
            if (from.lost) return say_farewell(*from.way, from.pass_there, from.job);
            return tell(from, bytes_of(Beat{Kind::beat, BeatWord::answer, from.job.high, from.job.low}));
        case BeatWord::answer:
            from.has_answered = true;
            from.asked = false;
            from.way->probing = false;
            from.way->failing_ns = 0;
            return;
        case BeatWord::farewell:
            // The next round of beats acts on it. An endpoint must not be closed from within the transport.
            from.has_answered = from.asked = true;
            from.silent_ns = long_silence_ns;
            return;
    }
}

// Tells a peer that this proxy has given it up. If the connection is closed, a new one carries the message
// and stays until the job ends.
void Peers::say_farewell(Way& way, std::uint64_t pass_there, const JobId& job) {
    if (way.endpoint == nullptr && transport_.connect(way.address_bytes(), &way.endpoint) != Status::ok)
        return;
    say(way, pass_there, bytes_of(Beat{Kind::beat, BeatWord::farewell, job.high, job.low}));
}

// A job may have ended here but not yet at the peer. Whatever the job still waits for there, this proxy is
// not silent, so it answers the peer's questions. If it has given the peer up before, it says so.
bool Peers::answer_late(const Stamp& stamp, std::span<const std::byte> header) {
    EndedPeers::Record* ended = ended_peers_.find(stamp.pass);
    if (ended == nullptr) return false;
    Beat beat{};
    if (kind_of(header) != Kind::beat || !read(header, beat) || beat.word != BeatWord::question) return true;
    if (ended->way == nullptr) return true;
    if (ended->way->lost) EndedPeers::lead(*ended, &way_to(ended->way->address_bytes()));
    // The pass proves that the sender belongs to the job, whichever it names.
    const JobId job{beat.job_high, beat.job_low};
    if (ended->lost) {
        say_farewell(*ended->way, ended->pass_there, job);
    } else if (ended->way->endpoint != nullptr) {
        say(*ended->way, ended->pass_there, bytes_of(Beat{Kind::beat, BeatWord::answer, job.high, job.low}));
    }
    return true;
}

void Peers::give_up_silent(Peer& peer) {
    if (peer.silent_ns >= long_silence_ns) {
        log::error(Code::device_lost, "proxy {:x} was lost: it says that this one was silent for too long",
                   peer.id);
    } else {
        log::error(Code::device_lost, "proxy {:x} was lost: no answer for {:.1f} s", peer.id,
                   static_cast<double>(peer.silent_ns) * 1e-9);
    }
    peer.lost = peer.way->given_up = true;
    newly_lost_.push_back(&peer);
}

// Operations in flight would wait for as long as the other operating system runs. Closing the endpoint ends
// them.
void Peers::give_up_way(Way& way) {
    way.lost = true;
    if (way.endpoint != nullptr) transport_.disconnect(std::exchange(way.endpoint, nullptr));
    each_peer([&](Peer& peer) {
        if (peer.way != &way || peer.lost) return;
        log::error(Code::device_lost, "proxy {:x} was lost: no answer in any job", peer.id);
        peer.lost = true;
        newly_lost_.push_back(&peer);
    });
}

}  // namespace offpath::engine
