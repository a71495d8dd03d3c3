// Other proxies: how the engine finds them, reaches them and gives them up.
#include "engine/mover/peers.h"

#include "base/little_endian.h"
#include "base/log.h"
#include "base/random_numbers.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace offpath::engine {
namespace {

// A message's header, with its stamp in front.
class Stamped {
  public:
    Stamped(std::uint64_t pass_there, ProxyId self, std::span<const std::byte> header)
        : used_(sizeof(Stamp) + header.size()) {
        const Stamp stamp{self, pass_there};
        std::memcpy(bytes_.data(), &stamp, sizeof stamp);
        std::memcpy(bytes_.data() + sizeof stamp, header.data(), header.size());
    }
    std::span<const std::byte> bytes() const { return std::span(bytes_).first(used_); }

  private:
    std::array<std::byte, transport::Transport::max_header> bytes_;
    std::size_t used_;
};

std::uint64_t hash_of(std::span<const std::byte> bytes) {
    return std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// Returns the job that the message names, or {0, 0} if it names none.
JobId job_said_by(std::span<const std::byte> header) {
    const Kind kind = kind_of(header);
    PeerHello hello{};
    Beat beat{};
    RankGone gone{};
    Routed routed{};
    if (kind == Kind::hello && read(header, hello)) return {hello.job_high, hello.job_low};
    if (kind == Kind::beat && read(header, beat)) return {beat.job_high, beat.job_low};
    if (kind == Kind::rank_gone && read(header, gone)) return {gone.job_high, gone.job_low};
    if (!is_routed(kind) || header.size() < sizeof routed) return {};
    std::memcpy(&routed, header.data(), sizeof routed);
    return {routed.route.job_high, routed.route.job_low};
}

}  // namespace

std::uint64_t pass_of(const JobSecret& secret, const JobId& job, ProxyId from, ProxyId to,
                      std::uint16_t version) {
    constexpr std::string_view label = "offpath pass";
    std::array<std::byte, label.size() + 40> text;
    std::memcpy(text.data(), label.data(), label.size());
    const std::array<std::uint64_t, 5> numbers{job.high, job.low, from, to, version};
    for (std::size_t i = 0; i < numbers.size(); ++i)
        write_little(text, label.size() + 8 * i, numbers[i], 8);
    return keyed_word(secret, text);
}

Peers::Peers(transport::Transport& transport, ProxyId self, Counters& counters, const Clock& clock,
             std::size_t ended_peers)
    : transport_(transport), self_(self), counters_(counters), clock_(clock), ended_peers_(ended_peers) {
    me_.id = self;
    me_.self = true;
}

Status Peers::join(const JobId& id, const JobSecret& secret, Job** job) {
    std::unique_ptr<Job>& known = jobs_[id];
    if (known == nullptr) {
        known = std::make_unique<Job>();
        known->id = id;
        known->secret = secret;
    } else if (known->secret != secret) {
        return Status::access;
    }
    ++known->sessions;
    *job = known.get();
    return Status::ok;
}

Job* Peers::find_job(const JobId& id) {
    const auto known = jobs_.find(id);
    return known == jobs_.end() ? nullptr : known->second.get();
}

Status Peers::add(Job& job, ProxyId id, std::span<const std::byte> address) {
    const auto known = job.peers.find(id);
    Peer& peer = known != job.peers.end() ? known->second : make_peer(job, id);
    if (peer.way == nullptr) {
        peer.way = &way_to(address);
    } else if (!peer.way->leads_to(address)) {
        log::error(Code::malformed, "proxy {:x} was announced with two different addresses", id);
        return Status::invalid;
    }
    return Status::ok;
}

Peer* Peers::find(Job& job, ProxyId id) {
    if (id == self_) return &me_;
    const auto it = job.peers.find(id);
    return it == job.peers.end() || it->second.way == nullptr ? nullptr : &it->second;
}

void Peers::greet(Peer& peer) {
    if (!peer.self && !peer.lost && peer.endpoint() == nullptr)
        tell(peer, bytes_of(PeerHello{Kind::hello, 0, peer.job.high, peer.job.low}));
}

Peer& Peers::make_peer(Job& job, ProxyId id) {
    Peer& peer = job.peers[id];
    peer.id = id;
    peer.job = job.id;
    peer.pass_there = pass_of(job.secret, job.id, self_, id);
    peer.pass_here = pass_of(job.secret, job.id, id, self_);
    return peer;
}

// A lost way is not used again. It stays with the peers that lost it.
Way& Peers::way_to(std::span<const std::byte> address) {
    // A job of p proxies announces p addresses here, so looking at all ways each time would take p * p steps.
    const std::uint64_t hash = hash_of(address);
    for (auto [known, end] = ways_.equal_range(hash); known != end; ++known) {
        Way& way = known->second;
        if (!way.lost && way.leads_to(address)) return way;
    }
    Way& way = ways_.emplace(hash, Way{})->second;
    way.address.assign(reinterpret_cast<const char*>(address.data()), address.size());
    return way;
}

void Peers::end(Job& job) {
    for (auto& [id, peer] : job.peers) {
        std::erase(newly_lost_, &peer);
        passes_here_.erase(peer.pass_here);
        ended_peers_.remember(peer);
        if (last_sender_ == &peer) last_sender_ = nullptr;
    }
    jobs_.erase(JobId{job.id});
    const auto used = [&](const Way& way) {
        return std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& other) {
            return std::any_of(other.second->peers.begin(), other.second->peers.end(),
                               [&](const auto& peer) { return peer.second.way == &way; });
        });
    };
    for (auto it = ways_.begin(); it != ways_.end();) {
        Way& way = it->second;
        if (!way.lost || used(way)) {
            ++it;
            continue;
        }
        if (way.endpoint != nullptr) transport_.disconnect(std::exchange(way.endpoint, nullptr));
        // Records of ended peers still need its address.
        it = way.ended_peers == 0 ? ways_.erase(it) : std::next(it);
    }
}

Peer* Peers::sender_of(const Stamp& stamp, std::span<const std::byte> header) {
    if (last_sender_ != nullptr && last_sender_->pass_here == stamp.pass && last_sender_->id == stamp.proxy)
        return last_sender_;
    const auto known = passes_here_.find(stamp.pass);
    if (known != passes_here_.end())
        return known->second->id == stamp.proxy ? last_sender_ = known->second : nullptr;
    // Its first message. Several jobs may name the proxy.
    for (auto& [id, job] : jobs_) {
        const auto sender = job->peers.find(stamp.proxy);
        if (sender == job->peers.end() || sender->second.pass_here != stamp.pass) continue;
        passes_here_.emplace(stamp.pass, &sender->second);
        return last_sender_ = &sender->second;
    }
    // A proxy may send a message before a rank here has announced that it belongs to the job.
    if (stamp.proxy == 0 || stamp.proxy == self_) return nullptr;
    const auto job = jobs_.find(job_said_by(header));
    if (job == jobs_.end() || job->second->peers.contains(stamp.proxy) ||
        pass_of(job->second->secret, job->first, stamp.proxy, self_) != stamp.pass)
        return nullptr;
    return last_sender_ = &make_peer(*job->second, stamp.proxy);
}

void Peers::refuse(const char* what, const Peer* from) {
    ++counters_.messages_refused;
    if (!refusals_.may_speak(clock_.now_ns())) return;
    log::warn(Code::malformed, "{} was refused, from {}{}", what,
              from == nullptr ? "a stranger" : fmt::format("proxy {:x}", from->id), refusals_.left_out());
}

bool Peers::connect(Peer& peer) {
    if (peer.lost || peer.way == nullptr) return false;
    Way& way = *peer.way;
    if (way.endpoint != nullptr && !way.probing) return true;
    // From now on something depends on the connection.
    way.probing = false;
    if (way.failed && way.endpoint != nullptr) retired_.push_back(std::exchange(way.endpoint, nullptr));
    way.failed = false;
    if (way.endpoint != nullptr) return true;
    const Status status =
        way.lost ? Status::peer_lost : transport_.connect(way.address_bytes(), &way.endpoint);
    if (status == Status::ok) return true;
    way.lost = true;
    log::error(Code::no_way, "proxy {:x} cannot be reached: {}", peer.id, to_string(status));
    peer.lost = true;
    newly_lost_.push_back(&peer);
    return false;
}

void Peers::tell(Peer& peer, std::span<const std::byte> header, std::span<const std::byte> payload) {
    if (closed_) return;
    if (peer.self) {
        LocalMessage message;
        std::copy(header.begin(), header.end(), message.bytes.begin());
        message.size = header.size();
        local_messages_.push_back(message);
        return;
    }
    if (!connect(peer)) return;
    ++counters_.messages_sent;
    const Stamped stamped(peer.pass_there, self_, header);
    const Status status = transport_.post(*peer.way->endpoint, stamped.bytes(), payload);
    if (is_error(status)) not_sent(peer, status);
}

void Peers::say(Way& way, std::uint64_t pass_there, std::span<const std::byte> header) {
    ++counters_.messages_sent;
    (void)transport_.post(*way.endpoint, Stamped(pass_there, self_, header).bytes(), {});
}

Status Peers::transmit(Peer& peer, std::span<const std::byte> header, const void* payload, std::size_t bytes,
                       Completion* completion) {
    ++counters_.messages_sent;
    const Stamped stamped(peer.pass_there, self_, header);
    return transport_.send(*peer.way->endpoint, stamped.bytes(), payload, bytes, completion);
}

Status Peers::transmit_from(Peer& peer, std::span<const std::byte> header, const NetworkPlace& payload,
                            std::size_t bytes, Completion* completion) {
    ++counters_.messages_sent;
    const Stamped stamped(peer.pass_there, self_, header);
    return transport_.send_from(*peer.way->endpoint, stamped.bytes(), payload, bytes, completion);
}

void Peers::not_sent(Peer& peer, Status status) {
    log::error(Code::device_lost, "a message to proxy {:x} failed: {}", peer.id, to_string(status));
    peer.lost = true;
    newly_lost_.push_back(&peer);
}

std::vector<Peer*> Peers::endpoint_lost(const transport::Endpoint& endpoint) {
    std::vector<Peer*> lost;
    for (auto& [hash, way] : ways_) {
        if (way.endpoint != &endpoint) continue;
        if (way.probing) {
            way.failed = true;
            return lost;
        }
        way.lost = true;
    }
    each_peer([&](Peer& peer) {
        if (peer.endpoint() == &endpoint) lost.push_back(&peer);
    });
    return lost;
}

}  // namespace offpath::engine
