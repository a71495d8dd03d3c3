// Peers: the other proxies that this engine's jobs name, the connections to them, and the messages over those
// connections.
//
// Invariant: a message counts only if its stamp proves that its sender knows the secret of a job with
// sessions here. A proxy may be named by several jobs; each job has its own Peer for it.
//
// Messages that the engine sends to itself wait in a queue, which the engine empties once a round. A peer
// that is found to be lost waits in a list until the engine acts on it.
//
// A job of p proxies makes p peers here, so p * p in all. Most of them never exchange anything, so what a
// peer needs only then is made only then.
//
// Ownership: owns jobs, peers and ways; borrows the transport. Threads: the engine's.
#pragma once

#include "base/completion.h"
#include "base/log_limit.h"
#include "engine/mover/ended_peers.h"
#include "engine/mover/peer.h"
#include "engine/mover/wire.h"
#include "engine/shared/config.h"

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

namespace offpath::engine {

class Peers {
  public:
    // `ended_peers`: Config::ended_peers.
    Peers(transport::Transport& transport, ProxyId self, Counters& counters, const Clock& clock,
          std::size_t ended_peers);

    // Nothing is sent after this call.
    void close() { closed_ = true; }
    bool closed() const { return closed_; }
    ProxyId self() const { return self_; }
    Peer& me() { return me_; }  // this engine, for every job

    // A session of the job begins. access: the job is present with another secret.
    Status join(const JobId& id, const JobSecret& secret, Job** job);
    // The job's last session has ended. Connections stay, for messages that are still leaving and for the
    // next job.
    void end(Job& job);
    Job* find_job(const JobId& id);
    // invalid: the proxy is known with another address.
    Status add(Job& job, ProxyId id, std::span<const std::byte> address);
    // Null: no rank of the job has announced it.
    Peer* find(Job& job, ProxyId id);

    // The proxy that sent the message; null: an unknown sender.
    Peer* sender_of(const Stamp& stamp, std::span<const std::byte> header);
    // Handles a message from a proxy whose job has ended here.
    bool answer_late(const Stamp& stamp, std::span<const std::byte> header);
    // Counts and logs a refused message. `from` is null for an unknown sender.
    void refuse(const char* what, const Peer* from);

    // False: the peer is lost, or no rank here has announced its address.
    bool connect(Peer& peer);
    // Starts connecting, unless that has been done.
    void greet(Peer& peer);
    // Sends to a peer that is connected.
    // Like transmit(), but of a payload that only the network card reaches (Transport::send_from).
    Status transmit_from(Peer& peer, std::span<const std::byte> header, const NetworkPlace& payload,
                         std::size_t bytes, Completion* completion);
    Status transmit(Peer& peer, std::span<const std::byte> header, const void* payload, std::size_t bytes,
                    Completion* completion);
    void tell(Peer& peer, std::span<const std::byte> header, std::span<const std::byte> payload = {});
    void not_sent(Peer& peer, Status status);

    // A header that this engine has sent to itself. Such messages carry no payload.
    struct LocalMessage {
        std::array<std::byte, transport::Transport::max_header> bytes;
        std::size_t size;
        std::span<const std::byte> header() const { return std::span(bytes).first(size); }
    };
    std::deque<LocalMessage>& local_messages() { return local_messages_; }

    // Peers found to be lost since the engine last checked.
    std::vector<Peer*>& newly_lost() { return newly_lost_; }
    bool has_work() const { return !newly_lost_.empty() || !local_messages_.empty(); }
    // Returns the peers that are lost with the endpoint.
    std::vector<Peer*> endpoint_lost(const transport::Endpoint& endpoint);

    template <typename Visit>
    void each_peer(Visit&& visit) {
        for (auto& [id, job] : jobs_)
            for (auto& [proxy, peer] : job->peers)
                visit(peer);
    }

    // beats.cpp. `mark_awaited` sets Peer::awaited and Peer::named of the peers that operations depend on.
    void beat(std::uint64_t now_ns, std::uint64_t limit_ns, const std::function<void()>& mark_awaited);
    void on_beat(const Beat& beat, Peer& from);

  private:
    Peer& make_peer(Job& job, ProxyId id);
    Way& way_to(std::span<const std::byte> address);
    // Sends over the way's connection and ignores errors.
    void say(Way& way, std::uint64_t pass_there, std::span<const std::byte> header);
    // beats.cpp
    void probe_named(std::uint64_t passed_ns, std::uint64_t limit_ns);
    void probe(Peer& peer, std::uint64_t limit_ns);
    void ask(Peer& peer, std::uint64_t passed_ns, std::uint64_t limit_ns);
    void say_farewell(Way& way, std::uint64_t pass_there, const JobId& job);
    void give_up_silent(Peer& peer);
    void give_up_way(Way& way);

    transport::Transport& transport_;
    const ProxyId self_;
    Counters& counters_;
    const Clock& clock_;
    bool closed_ = false;

    Peer me_;
    std::map<JobId, std::unique_ptr<Job>> jobs_;
    std::unordered_multimap<std::uint64_t, Way> ways_;      // by the address's hash; may be lost
    std::unordered_map<std::uint64_t, Peer*> passes_here_;  // of peers that have sent messages
    Peer* last_sender_ = nullptr;
    EndedPeers ended_peers_;
    LogLimit refusals_;
    std::deque<LocalMessage> local_messages_;
    std::vector<Peer*> newly_lost_;
    std::vector<transport::Endpoint*> retired_;  // to be closed outside of the transport
    std::uint64_t beaten_ns_ = 0;                // the last round of beats
};

}  // namespace offpath::engine
