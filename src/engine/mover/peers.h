// Peers: the other proxies that this engine's jobs name, the connections to them, and the messages that go by
// those.
//
// Invariant: a message counts only if its stamp proves that its sender knows the secret of a job with
// sessions here, and a proxy may be named by several jobs, each of which has a Peer of its own for it.
//
// What is said to the engine itself waits in a queue, which the engine empties once a round. A peer that is
// found to be lost waits in a list until the engine acts on it.
//
// Ownership: owns jobs, peers and ways; borrows the transport. Threads: the engine's.
#pragma once

#include "base/completion.h"
#include "base/log_limit.h"
#include "engine/mover/peer.h"
#include "engine/mover/wire.h"
#include "engine/shared/config.h"

#include <array>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

namespace offpath::engine {

class Peers {
  public:
    Peers(transport::Transport& transport, ProxyId self, Counters& counters, const Clock& clock);

    // Nothing is said any more from here on.
    void close() { closed_ = true; }
    bool closed() const { return closed_; }
    ProxyId self() const { return self_; }
    Peer& me() { return me_; }  // this engine, for every job

    // A session of the job begins. access: the job is here, with another secret.
    Status join(const JobId& id, const JobSecret& secret, Job** job);
    // Its last session has ended. Connections stay, for what is still leaving by them and for the next job.
    void end(Job& job);
    Job* find_job(const JobId& id);
    // invalid: it is known with another address.
    Status add(Job& job, ProxyId id, std::span<const std::byte> address, Peer** peer);
    // Null: no rank of the job has announced it.
    Peer* find(const Job& job, ProxyId id);

    // The proxy that says it; null: a stranger.
    Peer* sender_of(const Stamp& stamp, std::span<const std::byte> header);
    // A message of a proxy whose job has ended here.
    bool answer_late(const Stamp& stamp, std::span<const std::byte> header);
    // Null: a stranger.
    void refuse(const char* what, const Peer* from);

    // False: it is lost, or no rank here has said where it is.
    bool connect(Peer& peer);
    // Connects to it, unless that was done.
    void greet(Peer& peer);
    // To a peer that is connected.
    Status transmit(Peer& peer, std::span<const std::byte> header, const void* payload, std::size_t bytes,
                    Completion* completion);
    void tell(Peer& peer, std::span<const std::byte> header, std::span<const std::byte> payload = {});
    void not_sent(Peer& peer, Status status);

    // The headers that this engine has told itself; they carry no payload.
    struct LocalMessage {
        std::array<std::byte, transport::Transport::max_header> bytes;
        std::size_t size;
        std::span<const std::byte> header() const { return std::span(bytes).first(size); }
    };
    std::deque<LocalMessage>& local_messages() { return local_messages_; }

    // Peers that were found to be lost since the engine last asked.
    std::vector<Peer*>& newly_lost() { return newly_lost_; }
    bool has_work() const { return !newly_lost_.empty() || !local_messages_.empty(); }
    // The peers that are lost with it.
    std::vector<Peer*> endpoint_lost(const transport::Endpoint& endpoint);

    template <typename Visit>
    void each_peer(Visit&& visit) {
        for (auto& [id, job] : jobs_)
            for (auto& [proxy, peer] : job->peers)
                visit(*peer);
    }

    // beats.cpp. `mark_awaited` sets Peer::awaited and Peer::named of the peers that operations depend on.
    void beat(std::uint64_t now_ns, std::uint64_t limit_ns, const std::function<void()>& mark_awaited);
    void on_beat(const Beat& beat, Peer& from);

  private:
    Peer& make_peer(Job& job, ProxyId id);
    Way& way_to(std::span<const std::byte> address);
    // By the connection that is there, and whatever comes of it.
    void say(const Peer& peer, std::span<const std::byte> header);
    // beats.cpp
    void probe_named(std::uint64_t passed_ns, std::uint64_t limit_ns);
    void probe(Peer& peer, std::uint64_t limit_ns);
    void ask(Peer& peer, std::uint64_t passed_ns, std::uint64_t limit_ns);
    void say_farewell(Peer& peer);
    void give_up_silent(Peer& peer);
    void give_up_way(Way& way);

    transport::Transport& transport_;
    const ProxyId self_;
    Counters& counters_;
    const Clock& clock_;
    bool closed_ = false;

    Peer me_;
    std::map<JobId, std::unique_ptr<Job>> jobs_;
    std::list<Way> ways_;
    std::unordered_map<std::uint64_t, Peer*> passes_here_;
    Peer* last_sender_ = nullptr;
    std::unordered_map<std::uint64_t, Peer> ended_peers_;  // of jobs that have ended, by their passes
    LogLimit refusals_;
    std::deque<LocalMessage> local_messages_;
    std::vector<Peer*> newly_lost_;
    std::vector<transport::Endpoint*> retired_;  // to be closed outside of the transport
    std::uint64_t beaten_ns_ = 0;                // the last round of beats
};

}  // namespace offpath::engine
