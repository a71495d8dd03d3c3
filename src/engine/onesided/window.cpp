// Windows: how they begin and end, and what happens when ranks are lost.
#include "base/log.h"
#include "engine/onesided/onesided.h"

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
    ++WindowsOfTeam::of(team).windows;
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

// Removes the window from the engine's lists.
void OneSided::drop(const Window& window) {
    std::erase(unsettled_, &window);
    std::erase_if(released_, [&](const Released& lane) { return lane.window == &window; });
    std::erase_if(turns_, [&](const Turn& turn) { return turn.window == &window; });
}

// Completes the calls that waited for the last use of a range or of the window.
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
        --WindowsOfTeam::of(*team).windows;
        team->early_bytes -= window.early_bytes;
        team->session->its_job->early_bytes -= window.early_bytes;
        drop(window);
        windows_.erase(std::make_tuple(job.high, job.low, team->id, team->rank, window.id));
        core_.settle(*team);
    }
    for (Completion* completion : done) {
        if (completion != nullptr) (*completion)(Status::ok);
    }
}

void OneSided::end_visits(const Window& window, const std::function<bool(const Visit&)>& of, Status status) {
    std::vector<std::uint64_t> tokens;
    for (const Visit* visit = window.visits.first(); visit != nullptr; visit = window.visits.after(*visit))
        if (of(*visit)) tokens.push_back(visit->token);
    // A visit that ends may let others end.
    for (const std::uint64_t token : tokens)
        if (Visit* visit = visits_.find(token)) end_visit(*visit, status);
}

void OneSided::give_up_locks(Window& window) {
    for (const auto& asker : window.lock.give_up())
        answer(*window.team->peers[asker.rank], asker.token, Status::peer_lost);
}

void OneSided::ranks_gone(Team& team, const RanksGone& gone) {
    for (auto& [key, window] : windows_) {
        if (window->team != &team) continue;
        for (StartedCall* call : window->calls.all())
            if (gone(call->asked.target)) fail_call(*call, Status::peer_lost);
        end_visits(
            *window, [&](const Visit& visit) { return gone(visit.origin); }, Status::peer_lost);
        give_up_locks(*window);
        retire(*window);
    }
}

void OneSided::cancel(Session& session, Status reason) {
    for (auto& [key, window] : windows_) {
        if (&window->session() != &session) continue;
        for (StartedCall* call : window->calls.all())
            fail_call(*call, reason);
        end_visits(
            *window, [](const Visit&) { return true; }, Status::peer_lost);
        give_up_locks(*window);
        retire(*window);
    }
}

// The ranks of a window with a ledger finish its work without their devices, which therefore must not touch
// its memory any more. An update that is being written ends as usual: its origin cannot get the result anew.
void OneSided::retire(Window& window) {
    if (!window.keeps_ledger() || window.retired) return;
    window.retired = true;
    end_visits(
        window, [](const Visit& visit) { return !visit.in_ledger; }, Status::peer_lost);
    close_if_retired(window);
}

void OneSided::close_if_retired(Window& window) {
    if (!window.retired || !window.visits.empty()) return;
    if (window.remote_ledger) {
        window.remote_ledger->close();
    } else {
        window.ledger.close();
    }
}

void OneSided::ledger_settled(Window& window) {
    if (window.ending) unsettled_.push_back(&window);
}

Status OneSided::keep_ledger(Window& window, const memory::HostRange& memory) {
    const std::size_t ranks = window.team->peers.size();
    if (window.ending || window.keeps_ledger() || memory.bytes < rma::Ledger::bytes(ranks))
        return Status::invalid;
    const bool with_marks = memory.bytes >= rma::Ledger::bytes_with_marks(ranks);
    const std::size_t bytes = with_marks ? rma::Ledger::bytes_with_marks(ranks) : rma::Ledger::bytes(ranks);
    memory::HostMemory& host = *window.session().memory;
    std::byte* const words = host.direct(memory, 0, bytes);
    if (words != nullptr) {
        if (reinterpret_cast<std::uintptr_t>(words) % alignof(std::uint64_t) != 0) return Status::invalid;
        window.ledger = rma::Ledger(words, ranks, with_marks);
    } else {
        if (with_marks || host.back_end(memory) != memory::BackEnd::staged) return Status::unsupported;
        window.remote_ledger.emplace(host, memory, ranks, [this, &window] { ledger_settled(window); });
    }
    if (window.team->any_gone()) retire(window);
    return Status::ok;
}

std::unique_ptr<TeamPart> OneSided::join(Team& /*team*/) {
    return std::make_unique<WindowsOfTeam>();
}

void OneSided::mark_awaited(const Session& session) const {
    if (outstanding(session) == 0) return;
    for (const auto& team : session.teams)
        team->mark_awaited();
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
        if (&window->session() != &session) continue;
        count += window->calls.size() + window->visits.size() + window->held + window->lock.waiting();
        if (window->remote_ledger) count += window->remote_ledger->outstanding();
    }
    return count;
}

}  // namespace offpath::engine
