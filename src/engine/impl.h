// Engine::Impl: the engine's core and its tenants. Private to this room.
#pragma once

#include "engine/engine.h"
#include "engine/messages/messages.h"
#include "engine/mover/mover.h"
#include "engine/onesided/onesided.h"
#include "engine/schedules/schedules.h"
#include "engine/teams/tenant.h"

#include <array>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace offpath::engine {

// Key of the team table: the team and the rank that a message is addressed to.
struct TeamKey {
    std::uint64_t job_high, job_low, team;
    std::uint32_t rank;
    friend bool operator==(const TeamKey&, const TeamKey&) = default;
};
struct TeamKeyHash {
    std::size_t operator()(const TeamKey& key) const {
        std::uint64_t hash = key.job_low ^ (key.team + 0x9E3779B97F4A7C15ull + (key.job_high << 6));
        hash = (hash ^ key.rank) * 0xBF58476D1CE4E5B9ull;
        return hash ^ (hash >> 31);
    }
};

// A message for a team that has not been created here yet.
struct Orphan {
    std::vector<std::byte> header, payload;
    Peer* from = nullptr;
};

struct Engine::Impl final : Core {
    Impl(transport::Transport& its_transport, ProxyId self, const Config& its_config,
         const Surroundings& surroundings);

    // Messages.
    void dispatch(std::span<const std::byte> header, const transport::Incoming* incoming, Peer& from);
    void dropped(std::span<const std::byte> header, const transport::Incoming* incoming);
    void on_rank_gone(const RankGone& gone, const Peer& from);
    Tenant* tenant_of(Kind kind);
    // Core
    void deliver(std::span<const std::byte> header, std::span<const std::byte> payload, Peer& from) override;
    void too_far_ahead(Team& team, std::uint32_t rank) override;
    void settle(Team& team) override;

    // Sessions and teams.
    Status create_team(Session& session, std::uint64_t team_id, std::uint32_t rank,
                       std::span<const Member> members, Team** team);
    void destroy(Team& team);
    bool close_session(Session& session, Status reason);
    std::size_t outstanding(const Session& session) const;
    void peer_lost(Peer& peer);
    void rank_gone(Session& session, std::uint32_t job_rank, const Peer& proxy);
    void ranks_gone(Team& team, const RanksGone& gone);

    bool advance();

    Config own_config;
    Counters own_counters;
    const SteadyClock steady_clock;
    RandomNumbers own_random;
    Peers own_peers;
    Mover own_mover;
    Schedules schedules;
    Messages messages;
    OneSided one_sided;
    const std::array<Tenant*, tenant_count> tenants{&schedules, &messages, &one_sided};  // by TenantId

    // These refer to tenants, so they end before them.
    std::list<std::unique_ptr<Session>> sessions;
    std::unordered_map<TeamKey, Team*, TeamKeyHash> teams;
    std::unordered_map<TeamKey, std::vector<Orphan>, TeamKeyHash> orphans;
};

}  // namespace offpath::engine
