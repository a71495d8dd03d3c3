// Other proxies: how they are found, reached and given up.
#include "base/clock.h"
#include "base/little_endian.h"
#include "base/log.h"
#include "base/random_numbers.h"
#include "engine/onesided.h"

#include <cstring>
#include <string_view>

namespace offpath::engine {
namespace {

// Of a larger job, most pairs never exchange anything.
constexpr std::size_t most_greeted = 64;
constexpr std::size_t most_ended = 1 << 16;

// A message's header with the stamp before it.
class Stamped {
  public:
    Stamped(const Peer& to, ProxyId self, std::span<const std::byte> header)
        : used_(sizeof(Stamp) + header.size()) {
        const Stamp stamp{self, to.pass_there};
        std::memcpy(bytes_.data(), &stamp, sizeof stamp);
        std::memcpy(bytes_.data() + sizeof stamp, header.data(), header.size());
    }
    std::span<const std::byte> bytes() const { return std::span(bytes_).first(used_); }

  private:
    std::array<std::byte, transport::Transport::max_header> bytes_;
    std::size_t used_;
};
static_assert(sizeof(Stamp) + sizeof(OneSidedHeader) <= transport::Transport::max_header);

// The job for which the message speaks; {0, 0}: it does not say.
JobId job_said_by(std::span<const std::byte> header) {
    const Kind kind = kind_of(header);
    Exchange exchange{};
    Hello hello{};
    Beat beat{};
    if (kind == Kind::hello && read(header, hello)) return {hello.job_high, hello.job_low};
    if (kind == Kind::beat && read(header, beat)) return {beat.job_high, beat.job_low};
    if (read(header, exchange)) return {exchange.route.job_high, exchange.route.job_low};
    return {};
}

}  // namespace

std::uint64_t pass_of(const JobSecret& secret, const JobId& job, ProxyId from, ProxyId to) {
    constexpr std::string_view label = "offpath pass";
    std::array<std::byte, label.size() + 32> text;
    std::memcpy(text.data(), label.data(), label.size());
    const std::array<std::uint64_t, 4> numbers{job.high, job.low, from, to};
    for (std::size_t i = 0; i < numbers.size(); ++i)
        write_little(text, label.size() + 8 * i, numbers[i], 8);
    return keyed_word(secret, text);
}

Status Engine::add_proxy(Session& session, ProxyId proxy, std::span<const std::byte> address) {
    if (proxy == 0) return Status::invalid;
    if (proxy == impl_->self) return Status::ok;
    Job& job = *session.its_job;
    const auto known = job.peers.find(proxy);
    Peer& peer = known != job.peers.end() ? *known->second : impl_->make_peer(job, proxy);
    if (peer.way == nullptr) {
        peer.way = &impl_->way_to(address);
    } else if (!std::equal(peer.way->address.begin(), peer.way->address.end(), address.begin(),
                           address.end())) {
        log::error("proxy {:x} was announced with two different addresses", proxy);
        return Status::invalid;
    }
    session.acquaintances.insert(&peer);
    return Status::ok;
}

void Engine::greet(const Session& session) {
    if (session.acquaintances.size() > most_greeted) return;
    for (Peer* peer : session.acquaintances)
        if (!peer->self && !peer->lost && peer->endpoint() == nullptr)
            impl_->tell(*peer, bytes_of(Hello{Kind::hello, 0, session.job.high, session.job.low}));
}

Peer* Engine::Impl::find_peer(const Session& session, ProxyId id) {
    if (id == self) return &me;
    const auto& known = session.its_job->peers;
    const auto it = known.find(id);
    return it == known.end() || it->second->way == nullptr ? nullptr : it->second.get();
}

Peer& Engine::Impl::make_peer(Job& job, ProxyId id) {
    auto made = std::make_unique<Peer>();
    made->id = id;
    made->job = job.id;
    made->pass_there = pass_of(job.secret, job.id, self, id);
    made->pass_here = pass_of(job.secret, job.id, id, self);
    Peer& peer = *job.peers.emplace(id, std::move(made)).first->second;
    passes_here.emplace(peer.pass_here, &peer);
    return peer;
}

// One that was lost stays with those who lost it.
Way& Engine::Impl::way_to(std::span<const std::byte> address) {
    const auto known = std::find_if(ways.begin(), ways.end(), [&](const Way& way) {
        return !way.lost &&
               std::equal(way.address.begin(), way.address.end(), address.begin(), address.end());
    });
    if (known != ways.end()) return *known;
    Way& way = ways.emplace_back();
    way.address.assign(address.begin(), address.end());
    return way;
}

// Its last session has ended. Connections stay, for what is still leaving by them and for the next job.
void Engine::Impl::end_job(Job& job) {
    std::erase_if(orphans, [&](const auto& entry) {
        return entry.first.job_high == job.id.high && entry.first.job_low == job.id.low;
    });
    for (const auto& [id, peer] : job.peers) {
        one_sided->forget(*peer);
        std::erase(newly_lost, peer.get());
        passes_here.erase(peer->pass_here);
        if (ended_peers.size() >= most_ended) ended_peers.clear();
        ended_peers.insert_or_assign(peer->pass_here, *peer);
        if (last_sender == peer.get()) last_sender = nullptr;
    }
    jobs.erase(JobId{job.id});
    const auto used = [&](const Way& way) {
        return std::any_of(jobs.begin(), jobs.end(), [&](const auto& other) {
            return std::any_of(other.second->peers.begin(), other.second->peers.end(),
                               [&](const auto& peer) { return peer.second->way == &way; });
        });
    };
    std::erase_if(ways, [&](Way& way) {
        if (!way.lost || used(way)) return false;
        if (way.endpoint != nullptr) transport.disconnect(way.endpoint);
        std::erase_if(ended_peers, [&](const auto& ended) { return ended.second.way == &way; });
        return true;
    });
}

Peer* Engine::Impl::sender_of(const Stamp& stamp, std::span<const std::byte> header) {
    if (last_sender != nullptr && last_sender->pass_here == stamp.pass && last_sender->id == stamp.proxy)
        return last_sender;
    const auto known = passes_here.find(stamp.pass);
    if (known != passes_here.end())
        return known->second->id == stamp.proxy ? last_sender = known->second : nullptr;
    // A proxy may speak before a rank of ours has said that it belongs to the job.
    if (stamp.proxy == 0 || stamp.proxy == self) return nullptr;
    const auto job = jobs.find(job_said_by(header));
    if (job == jobs.end() || job->second->peers.contains(stamp.proxy) ||
        pass_of(job->second->secret, job->first, stamp.proxy, self) != stamp.pass)
        return nullptr;
    return last_sender = &make_peer(*job->second, stamp.proxy);
}

void Engine::Impl::refuse(const char* what, const Peer* from) {
    ++counters.messages_refused;
    if (!refusals.may_speak(SteadyClock().now_ns())) return;
    log::warn("{} was refused, from {}{}", what,
              from == nullptr ? "a stranger" : fmt::format("proxy {:x}", from->id), refusals.left_out());
}

bool Engine::Impl::connect(Peer& peer) {
    if (peer.lost || peer.way == nullptr) return false;
    Way& way = *peer.way;
    if (way.endpoint != nullptr && !way.probing) return true;
    // From here on something depends on it.
    way.probing = false;
    if (way.failed && way.endpoint != nullptr) retired.push_back(std::exchange(way.endpoint, nullptr));
    way.failed = false;
    if (way.endpoint != nullptr) return true;
    const Status status = way.lost ? Status::peer_lost : transport.connect(way.address, &way.endpoint);
    if (status == Status::ok) return true;
    way.lost = true;
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
    const Stamped stamped(peer, self, header);
    const Status status = transport.post(*peer.way->endpoint, stamped.bytes(), payload);
    if (is_error(status)) not_sent(peer, status);
}

void Engine::Impl::say(const Peer& peer, std::span<const std::byte> header) {
    ++counters.messages_sent;
    (void)transport.post(*peer.way->endpoint, Stamped(peer, self, header).bytes(), {});
}

// To a peer that is connected.
Status Engine::Impl::transmit(Peer& peer, std::span<const std::byte> header, const void* payload,
                              std::size_t bytes, Completion* completion) {
    ++counters.messages_sent;
    const Stamped stamped(peer, self, header);
    return transport.send(*peer.way->endpoint, stamped.bytes(), payload, bytes, completion);
}

void Engine::Impl::not_sent(Peer& peer, Status status) {
    log::error("a message to proxy {:x} failed: {}", peer.id, to_string(status));
    peer.lost = true;
    newly_lost.push_back(&peer);
}

void Engine::on_endpoint_lost(transport::Endpoint& endpoint) {
    for (Way& way : impl_->ways) {
        if (way.endpoint != &endpoint) continue;
        if (way.probing) {
            way.failed = true;
            return;
        }
        way.lost = true;
    }
    impl_->each_peer([&](Peer& peer) {
        if (peer.endpoint() == &endpoint) impl_->peer_lost(peer);
    });
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

bool Team::mark_gone(std::uint32_t job_rank, const Peer* proxy) {
    const auto it = std::find(job_ranks.begin(), job_ranks.end(), job_rank);
    if (it == job_ranks.end() || peers[static_cast<std::size_t>(it - job_ranks.begin())] != proxy)
        return false;
    left.resize(peers.size(), false);
    left[static_cast<std::size_t>(it - job_ranks.begin())] = true;
    return true;
}

void Engine::Impl::rank_gone(Session& session, std::uint32_t job_rank, const Peer& proxy) {
    session.gone.emplace(job_rank, &proxy);
    for (auto& team : session.teams) {
        if (!team->mark_gone(job_rank, &proxy)) continue;
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
