// Tenant: one kind of work that an engine does for its teams: schedules, messages, windows. A tenant uses the
// mover and the interface Core.
//
// Invariants: a tenant never includes another one. It owns the message kinds that it handles and the state
// that it keeps for a team (TeamPart). Threads: the engine calls everything here from its own thread.
#pragma once

#include "engine/mover/mover.h"
#include "engine/shared/config.h"
#include "engine/teams/team.h"

#include <functional>
#include <memory>
#include <span>

namespace offpath::engine {

// The services of the engine for its tenants.
class Core {
  public:
    Core(const Config& its_config, transport::Transport& its_transport, Peers& its_peers, Mover& its_mover,
         RandomNumbers& its_random, Counters& its_counters)
        : config(its_config),
          transport(its_transport),
          peers(its_peers),
          mover(its_mover),
          random(its_random),
          counters(its_counters) {}

    // Reserves room for an early message in its job's share. True: the message may be kept. `team`: the team
    // that it belongs to, if known.
    bool take_room(Job& job, Team* team, std::size_t payload_bytes);
    void give_room_back(Job& job, Team* team, std::size_t payload_bytes);
    // The bytes that one such message takes, including its place in a list or a map.
    static std::uint64_t room(std::size_t payload_bytes) { return 192 + payload_bytes; }
    // The rank has sent more early messages than there is room for; it counts as gone.
    virtual void too_far_ahead(Team& team, std::uint32_t rank) = 0;
    // Delivers a message with a Routed header that came inside another one.
    virtual void deliver(std::span<const std::byte> header, std::span<const std::byte> payload,
                         Peer& from) = 0;
    // Something on the team has ended, perhaps the last operation.
    virtual void settle(Team& team) = 0;

    const Config& config;
    transport::Transport& transport;
    Peers& peers;
    Mover& mover;
    RandomNumbers& random;
    Counters& counters;

  protected:
    ~Core() = default;
};

using RanksGone = std::function<bool(std::uint32_t rank)>;

class Tenant {
  public:
    explicit Tenant(Core& core) : core_(core) {}
    virtual ~Tenant() = default;
    Tenant(const Tenant&) = delete;
    Tenant& operator=(const Tenant&) = delete;

    virtual std::unique_ptr<TeamPart> join(Team& team) = 0;
    // Handles a message of the tenant's kinds. Its route names a rank of `team`, and another rank that `from`
    // serves. False: it is malformed.
    virtual bool on_message(Team& team, std::span<const std::byte> header, std::span<const std::byte> payload,
                            Peer& from) = 0;
    // Ends the session's operations with `reason`.
    virtual void cancel(Session& session, Status reason) = 0;
    // Ends the operations that are impossible without these ranks of the team.
    virtual void ranks_gone(Team& team, const RanksGone& gone) = 0;
    // The number of operations that are not over, including those done for others.
    virtual std::size_t outstanding(const Session& session) const = 0;
    // Sets Peer::awaited and Peer::named where operations of the session depend on a peer.
    virtual void mark_awaited(const Session& session) const = 0;

    // Steps of a round. Each returns whether anything moved.
    virtual bool advance() = 0;
    virtual bool finish() = 0;  // reports operations that are over
    virtual bool has_work() const = 0;

    // Frees memory that is kept for later operations, if there are none now.
    virtual void trim() = 0;

  protected:
    Core& core_;
};

}  // namespace offpath::engine
