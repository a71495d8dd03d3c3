// Windows: how they come and go, and what happens when ranks do.
#include "base/log.h"
#include "engine/onesided.h"

namespace offpath::engine {

Status OneSided::create(Team& team, std::uint64_t id, const memory::HostRange& memory, bool dynamic,
                        Window** window) {
    const JobId& job = team.session->job;
    const auto key = std::make_tuple(job.high, job.low, team.id, team.rank, id);
    if (team.destroyed || windows_.contains(key)) return Status::invalid;
    auto made = std::make_unique<Window>();
    made->team = &team;
    made->id = id;
    made->dynamic = dynamic;
    made->targets.resize(team.peers.size());
    made->lanes.resize(team.peers.size());
    if (!dynamic && memory.bytes > 0) {
        if (Status status = made->ranges.add(0, memory.bytes, memory.region, memory.address);
            status != Status::ok)
            return status;
    }
    ++team.windows;
    *window = made.get();
    windows_.emplace(key, std::move(made));
    return Status::ok;
}

Window* OneSided::find(const Route& route, std::uint64_t id, bool as_dest) {
    const auto found = windows_.find(
        std::make_tuple(route.job_high, route.job_low, route.team, as_dest ? route.dest : route.source, id));
    return found == windows_.end() ? nullptr : found->second.get();
}

Status OneSided::attach(Window& window, const memory::HostRange& memory, std::uint64_t begin) {
    if (!window.dynamic || window.ending) return Status::invalid;
    return window.ranges.add(begin, memory.bytes, memory.region, memory.address);
}

Status OneSided::detach(Window& window, std::uint64_t begin, Completion* done) {
    rma::Ranges::Range* range = window.ranges.at(begin);
    if (!window.dynamic || range == nullptr || range->leaving) return Status::invalid;
    if (range->users == 0) {
        window.ranges.remove(begin);
        return Status::ok;
    }
    range->leaving = true;
    window.detaches.push_back({begin, done});
    return Status::in_progress;
}

Status OneSided::destroy(Window& window, Completion* done) {
    if (window.ending) return Status::invalid;
    window.ending = true;
    window.ended = done;
    unsettled_.push_back(&window);
    return Status::in_progress;
}

// Nothing of ours names the window any more.
void OneSided::drop(const Window& window) {
    std::erase(unsettled_, &window);
    std::erase_if(released_, [&](const Released& lane) { return lane.window == &window; });
    std::erase_if(turns_, [&](const Turn& turn) { return turn.window == &window; });
}

// Ends what waited for the last use of a range, or of the window.
void OneSided::settle(Window& window) {
    std::vector<Completion*> done;
    std::erase_if(window.detaches, [&](const Window::Detach& detach) {
        if (window.ranges.at(detach.begin)->users > 0) return false;
        window.ranges.remove(detach.begin);
        done.push_back(detach.done);
        return true;
    });
    if (window.ending && window.idle()) {
        done.push_back(window.ended);
        Team* team = window.team;
        const JobId& job = team->session->job;
        --team->windows;
        team->early_bytes -= window.early_bytes;
        team->session->its_job->early_bytes -= window.early_bytes;
        drop(window);
        windows_.erase(std::make_tuple(job.high, job.low, team->id, team->rank, window.id));
        if (team->destroyed && team->idle()) engine_.outer.destroy_team(team);
    }
    for (Completion* completion : done) {
        if (completion != nullptr) (*completion)(Status::ok);
    }
}

void OneSided::fail_where(Team& team, const std::function<bool(std::uint32_t rank)>& gone) {
    for (auto& [key, window] : windows_) {
        if (window->team != &team) continue;
        const std::vector<Call*> calls(window->calls.begin(), window->calls.end());
        for (Call* call : calls) {
            if (gone(call->target)) fail_call(*call, Status::peer_lost);
        }
        const std::vector<Visit*> visits(window->visits.begin(), window->visits.end());
        for (Visit* visit : visits) {
            // One that ends may let others end.
            if (window->visits.contains(visit) && gone(visit->origin)) end_visit(*visit, Status::peer_lost);
        }
        for (const auto& asker : window->lock.give_up())
            answer(*team.peers[asker.rank], asker.token, Status::peer_lost);
    }
}

void OneSided::cancel(Session& session, Status reason) {
    for (auto& [key, window] : windows_) {
        if (&window->session() != &session) continue;
        const std::vector<Call*> calls(window->calls.begin(), window->calls.end());
        for (Call* call : calls)
            fail_call(*call, reason);
        const std::vector<Visit*> visits(window->visits.begin(), window->visits.end());
        for (Visit* visit : visits) {
            if (window->visits.contains(visit)) end_visit(*visit, Status::peer_lost);
        }
        for (const auto& asker : window->lock.give_up())
            answer(*window->team->peers[asker.rank], asker.token, Status::peer_lost);
    }
}

void OneSided::forget(Session& session) {
    for (auto it = windows_.begin(); it != windows_.end();) {
        Window& window = *it->second;
        if (&window.session() != &session) {
            ++it;
            continue;
        }
        drop(window);
        std::vector<Completion*> done{window.ended};
        for (const Window::Detach& detach : window.detaches)
            done.push_back(detach.done);
        it = windows_.erase(it);
        for (Completion* completion : done) {
            if (completion != nullptr) (*completion)(Status::canceled);
        }
    }
}

void OneSided::trim() {
    calls_.release_if_unused();
    parts_.release_if_unused();
    visits_.release_if_unused();
    flushes_.release_if_unused();
    parcels_.release_if_unused();
    std::vector<std::vector<std::byte>>().swap(spare_);
    std::vector<std::byte>().swap(direct_result_);
    std::vector<memory::HostPiece>().swap(pieces_);
}

std::size_t OneSided::outstanding(const Session& session) const {
    std::size_t count = 0;
    for (const auto& [key, window] : windows_) {
        if (&window->session() == &session)
            count += window->calls.size() + window->visits.size() + window->held;
    }
    return count;
}

}  // namespace offpath::engine
