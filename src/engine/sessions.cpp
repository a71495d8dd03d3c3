// Sessions and teams: how they begin and end, and what happens when ranks and proxies are lost.
#include "base/log.h"
#include "engine/impl.h"

#include <algorithm>

namespace offpath::engine {

Status Engine::Impl::create_team(Session& session, std::uint64_t team_id, std::uint32_t rank,
                                 std::span<const Member> members, Team** team) {
    const TeamKey key{session.job.high, session.job.low, team_id, rank};
    if (rank >= members.size() || members[rank].job_rank != session.job_rank || teams.contains(key))
        return Status::invalid;
    auto made = std::make_unique<Team>();
    made->session = &session;
    made->id = team_id;
    made->rank = rank;
    made->peers.reserve(members.size());
    made->job_ranks.reserve(members.size());
    for (const Member& member : members) {
        Peer* peer = peers.find(*session.its_job, member.proxy);
        if (peer == nullptr) {
            log::error(Code::malformed,
                       "team {:x} names proxy {:x} of job rank {}, which was never announced", team_id,
                       member.proxy, member.job_rank);
            return Status::invalid;
        }
        made->peers.push_back(peer);
        made->job_ranks.push_back(member.job_rank);
    }
    for (const auto& [member, proxy] : session.gone)
        made->mark_gone(member, proxy);
    for (std::size_t i = 0; i < tenant_count; ++i)
        made->parts[i] = tenants[i]->join(*made);
    *team = made.get();
    teams.emplace(key, made.get());
    session.teams.push_back(std::move(made));
    if (const auto it = orphans.find(key); it != orphans.end()) {
        const std::vector<Orphan> waiting = std::move(it->second);
        orphans.erase(it);
        for (const Orphan& message : waiting)
            give_room_back(*session.its_job, nullptr, message.payload.size());
        for (const Orphan& message : waiting)
            deliver(message.header, message.payload, *message.from);
    }
    return Status::ok;
}

// Ends the team when nothing runs on it any more.
void Engine::Impl::destroy(Team& team) {
    team.destroyed = true;
    settle(team);
}

void Engine::Impl::settle(Team& team) {
    if (!team.destroyed || !team.idle()) return;
    Session& session = *team.session;
    session.its_job->early_bytes -= team.early_bytes;
    teams.erase({session.job.high, session.job.low, team.id, team.rank});
    std::erase_if(session.teams, [&](const auto& owned) { return owned.get() == &team; });
}

std::size_t Engine::Impl::outstanding(const Session& session) const {
    std::size_t count = 0;
    for (const Tenant* tenant : tenants)
        count += tenant->outstanding(session);
    return count;
}

bool Engine::Impl::close_session(Session& session, Status reason) {
    const bool lost = !session.closing && reason == Status::peer_lost;
    session.closing = true;
    if (lost) {
        const RankGone gone{Kind::rank_gone, session.job_rank, session.job.high, session.job.low};
        peers.tell(peers.me(), bytes_of(gone));
        for (auto& [id, peer] : session.its_job->peers)
            peers.tell(peer, bytes_of(gone));
    }
    for (Tenant* tenant : tenants)
        tenant->cancel(session, reason);
    if (session.pieces > 0 || outstanding(session) > 0) return false;

    one_sided.forget(session);
    Job& job = *session.its_job;
    for (auto& team : session.teams) {
        job.early_bytes -= team->early_bytes;
        teams.erase({job.id.high, job.id.low, team->id, team->rank});
    }
    std::erase_if(sessions, [&](const auto& owned) { return owned.get() == &session; });
    if (--job.sessions > 0) return true;
    std::erase_if(orphans, [&](const auto& entry) {
        return entry.first.job_high == job.id.high && entry.first.job_low == job.id.low;
    });
    for (auto& [id, peer] : job.peers)
        one_sided.forget(peer);
    peers.end(job);
    return true;
}

void Engine::Impl::peer_lost(Peer& peer) {
    if (!peer.lost) log::error(Code::device_lost, "proxy {:x} was lost", peer.id);
    peer.lost = true;
    for (auto& session : sessions)
        for (auto& team : session->teams)
            ranks_gone(*team, [&](std::uint32_t rank) { return team->peers[rank] == &peer; });
}

void Engine::Impl::rank_gone(Session& session, std::uint32_t job_rank, const Peer& proxy) {
    session.gone.emplace(job_rank, &proxy);
    for (auto& team : session.teams) {
        if (!team->mark_gone(job_rank, &proxy)) continue;
        ranks_gone(*team, [&](std::uint32_t rank) { return team->job_ranks[rank] == job_rank; });
    }
}

// Ends everything that cannot be done without the ranks for which `gone` holds.
void Engine::Impl::ranks_gone(Team& team, const RanksGone& gone) {
    bool is_member = false;
    for (std::uint32_t rank = 0; rank < team.peers.size(); ++rank)
        is_member |= gone(rank);
    if (!is_member) return;
    for (Tenant* tenant : tenants)
        tenant->ranks_gone(team, gone);
}

void Engine::Impl::too_far_ahead(Team& team, std::uint32_t rank) {
    if (team.gone(rank)) return;
    log::error(Code::limit,
               "rank {} of team {:x} has sent more ahead than the {} bytes that may wait; it counts as gone",
               rank, team.id, config.early_bytes);
    rank_gone(*team.session, team.job_ranks[rank], *team.peers[rank]);
}

}  // namespace offpath::engine
