// Sessions and teams as all tenants of the engine know them, and the state that each tenant keeps for a team.
//
// Ownership: the engine owns sessions, a session its teams, a team the parts that tenants made for it.
// Threads: the engine's.
#pragma once

#include "engine/mover/transfer.h"
#include "engine/mover/wire.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace offpath::engine {

class Kernels;
class Team;

enum class TenantId : std::uint8_t { schedules, messages, one_sided };
constexpr std::size_t tenant_count = 3;

// The state that a tenant keeps for a team.
class TeamPart {
  public:
    virtual ~TeamPart() = default;
    // Whether the tenant has nothing left to do on the team.
    virtual bool idle() const = 0;
};

class Session : public MemoryUser {
  public:
    JobId job;
    Job* its_job = nullptr;
    std::uint32_t job_rank = 0;
    std::list<std::unique_ptr<Team>> teams;
    std::set<std::pair<std::uint32_t, const Peer*>> gone;  // ranks of the job that have left; their proxies
    Kernels* kernels = nullptr;                            // null: it has loaded none
    bool closing = false;
};

class Team {
  public:
    Session* session = nullptr;
    std::uint64_t id = 0;
    std::uint32_t rank = 0;
    std::vector<Peer*> peers;              // by team rank
    std::vector<std::uint32_t> job_ranks;  // likewise
    std::vector<bool> left;                // ranks that are gone, by team rank; empty: none
    std::uint64_t early_bytes = 0;         // its share of the job's early bytes
    bool destroyed = false;
    std::array<std::unique_ptr<TeamPart>, tenant_count> parts;

    bool idle() const {
        return std::all_of(parts.begin(), parts.end(), [](const auto& part) { return part->idle(); });
    }
    // Returns whether that rank of the job, served by that proxy, is a member of the team.
    bool mark_gone(std::uint32_t job_rank, const Peer* proxy);
    // Whether the rank, or the proxy that serves it, is gone.
    bool gone(std::uint32_t member) const { return peers[member]->lost || (!left.empty() && left[member]); }
    bool any_gone() const {
        for (std::uint32_t member = 0; member < peers.size(); ++member)
            if (gone(member)) return true;
        return false;
    }
    Route route_to(std::uint32_t dest) const { return {session->job.high, session->job.low, id, rank, dest}; }
    // A buffer of the team's rank.
    Location location(const memory::HostRange& buffer) const {
        return Location::of(*session->memory, buffer);
    }
    // Operations on the team depend on all of its proxies.
    void mark_awaited() const {
        for (Peer* peer : peers)
            peer->awaited = true;
    }
};

}  // namespace offpath::engine
