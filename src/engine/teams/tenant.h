// Tenant: one kind of work that an engine does for its teams: schedules, messages, windows. A tenant uses the
// mover, and what Core says of the engine.
//
// Invariants: a tenant never includes another one. It owns the message kinds that it takes, and what it keeps
// with a team (TeamPart). The engine calls all of these from its own thread.
#pragma once

#include "engine/mover/mover.h"
#include "engine/shared/config.h"
#include "engine/teams/team.h"

#include <functional>
#include <memory>
#include <span>

namespace offpath::engine {

// What the engine does for its tenants.
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

    // A message that comes before its time may be kept: there is room for it in its job's share. `team`:
    // whose it is, if that is known.
    bool take_room(Job& job, Team* team, std::size_t payload_bytes);
    void give_room_back(Job& job, Team* team, std::size_t payload_bytes);
    // What one such message takes, with its place in a list or a map.
    static std::uint64_t room(std::size_t payload_bytes) { return 192 + payload_bytes; }
    // The rank has sent so much ahead that there is no room: it counts as gone.
    virtual void too_far_ahead(Team& team, std::uint32_t rank) = 0;
    // A message with a Routed header that came inside another one.
    virtual void deliver(std::span<const std::byte> header, std::span<const std::byte> payload,
                         Peer& from) = 0;
    // Something on the team has ended: it may be the last.
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
    // A message of its kinds, whose route names a rank of `team` and another one that `from` serves. False:
    // it is malformed.
    virtual bool on_message(Team& team, std::span<const std::byte> header, std::span<const std::byte> payload,
                            Peer& from) = 0;
    // What runs for the session ends with `reason`.
    virtual void cancel(Session& session, Status reason) = 0;
    // What cannot be done any more without these ranks of the team ends.
    virtual void ranks_gone(Team& team, const RanksGone& gone) = 0;
    // Operations, and what is being done for others, that are not over.
    virtual std::size_t outstanding(const Session& session) const = 0;
    // Sets Peer::awaited and Peer::named where operations of the session depend on a peer.
    virtual void mark_awaited(const Session& session) const = 0;

    // Parts of a round. Each returns whether anything moved.
    virtual bool advance() = 0;
    virtual bool finish() = 0;  // tells of what is over
    virtual bool has_work() const = 0;

    // Gives back the memory that is kept for the next operations, if there are none.
    virtual void trim() = 0;

  protected:
    Core& core_;
};

}  // namespace offpath::engine
