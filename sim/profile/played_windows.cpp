#include "sim/profile/played_windows.h"

#include "collectives/selection.h"
#include "schedule/op.h"
#include "sim/programs/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace offpath::sim {

using ways::EpochTrial;
using ways::Way;

Meetings::Told Meetings::take(std::uint64_t window, std::uint64_t number, std::size_t ranks) {
    const auto found = told_.find({window, number});
    const Told all = found->second;
    if (++found->second.taken == ranks) told_.erase(found);
    return all;
}

void Meetings::tell(std::uint64_t window, std::uint64_t number, const ways::Evidence& evidence,
                    bool blocked) {
    Told& told = told_[{window, number}];
    told.most.observed_ns = std::max(told.most.observed_ns, evidence.observed_ns);
    told.most.outside_ns = std::max(told.most.outside_ns, evidence.outside_ns);
    told.blocked |= blocked;
}

template <typename Action>
void PlayedWindows::for_targets(Window& window, std::int32_t target, Action action) {
    for (std::size_t i = 0; i < window.targets.size(); ++i)
        if (target < 0 || static_cast<std::size_t>(target) == i) action(window.targets[i]);
}

void PlayedWindows::expose(const ProfiledWindow& profiled, std::uint64_t id, std::uint64_t bytes,
                           std::uint64_t team, engine::Team& library, engine::Team* device) {
    Window& window = windows_.emplace_back();
    const ProfiledCommunicator& comm = profile_.communicators[static_cast<std::size_t>(profiled.comm)];
    window.id = id;
    window.team = team;
    window.comm = profiled.comm;
    const HostMemoryKind memory = cluster_.platform().memory;
    window.mapped = memory == HostMemoryKind::map || (memory == HostMemoryKind::cma && profiled.allocated);
    window.busy = profiled.busy;
    window.targets.resize(comm.members.size());
    window.barrier = std::make_unique<engine::Plan>(
        collectives::barrier({comm.rank, static_cast<std::uint32_t>(comm.members.size())}));
    memory::HostRange range = Buffer(cluster_, bytes).range();
    const auto create = [&](Worker& worker, engine::Team& its_team, engine::Window*& made) {
        const Status status = worker.engine().create_window(its_team, id, range, false, &made);
        if (is_error(status)) throw std::runtime_error(std::string("create_window: ") + to_string(status));
    };
    create(cluster_.library_of(rank_), library, window.library);
    window.adapts = device != nullptr && routes_.window_on_device(rank_, profiled.comm);
    if (!window.adapts) return;
    range.region = window.mapped ? 1 : 0;
    create(cluster_.worker_of(rank_), *device, window.device);
}

void PlayedWindows::observe(Window& window, Time now) {
    window.observed_since = now;
    window.inside_before = inside_;
}

void PlayedWindows::called(const ProfiledCall& call, Time now) {
    if (call.window < 0) return;
    Window& its = window(call);
    if (!its.live) {
        its.live = true;
        its.way = its.adapts && its.busy ? Way::device : Way::host;
        its.choice = ways::WayChoice(its.way);
        observe(its, now);
    }
    if (call.name == "Win_free") its.live = false;
    if (call.name == "Win_lock_all") its.locked_all = true;
    if (call.name == "Win_lock") for_targets(its, call.peer, [](Target& target) { target.locked = true; });
    if (call.name == "Win_unlock" || call.name == "Win_unlock_all") {
        its.locked_all &= call.name == "Win_unlock";
        for_targets(its, call.peer, [](Target& target) {
            target.locked = false;
            target.granted = Target::Granted::no;
        });
    }
}

bool PlayedWindows::is_near(const Window& window, std::int32_t target) const {
    const auto& members = profile_.communicators[static_cast<std::size_t>(window.comm)].members;
    return cluster_.node_of(members[static_cast<std::size_t>(target)]) == cluster_.node_of(rank_);
}

// A trial without a result of its own begins with that of the nearest size in its group.
EpochTrial& PlayedWindows::trial_for(const Window& window, const ProfiledCall& call, rma::OpKind kind) {
    const std::size_t group = (kind == rma::OpKind::get ? 2U : 0U) + (is_near(window, call.peer) ? 1U : 0U);
    EpochTrial* const of_group = &trials_[group * magnitudes];
    const std::size_t at = std::min(static_cast<std::size_t>(std::bit_width(call.bytes)), magnitudes - 1);
    for (std::size_t apart = 1; of_group[at].is_fresh() && apart < magnitudes; ++apart) {
        if (at >= apart && of_group[at - apart].is_decided())
            of_group[at].follow(of_group[at - apart]);
        else if (at + apart < magnitudes && of_group[at + apart].is_decided())
            of_group[at].follow(of_group[at + apart]);
    }
    return of_group[at];
}

Way PlayedWindows::way_of(Window& window, const ProfiledCall& call, rma::OpKind kind, Time now) {
    if (!window.adapts || window.way == Way::device) return window.way;
    if (kind != rma::OpKind::put && kind != rma::OpKind::get) return Way::host;
    Target& target = window.targets[static_cast<std::size_t>(call.peer)];
    const bool may = (window.locked_all || target.locked) && target.granted == Target::Granted::yes;
    if (window.epoch.operations++ == 0) {
        window.epoch = {may ? &trial_for(window, call, kind) : nullptr, Way::host, 1, now};
        if (may) window.epoch.way = window.epoch.trial->next();
    }
    if (may && window.epoch.way == Way::device) return Way::device;
    if (target.granted == Target::Granted::no) target.granted = Target::Granted::asked;
    return Way::host;
}

Worker* PlayedWindows::other_proxy(const Window& window, std::int32_t target) const {
    const auto& members = profile_.communicators[static_cast<std::size_t>(window.comm)].members;
    Worker& worker = cluster_.worker_of(members[static_cast<std::size_t>(target)]);
    return &worker == &cluster_.worker_of(rank_) ? nullptr : &worker;
}

std::optional<Operation> PlayedWindows::shortly(Window& window, const ProfiledCall& call,
                                                const engine::OneSidedCall& access, bool& taken) {
    ++window.batch.now;
    const std::uint64_t moved = std::max(access.operand_bytes(), access.bytes);
    const bool small = moved <= ways::most_bundled_bytes, few = window.batch.is_few(moved);
    Target& target = window.targets[access.target];
    Worker* const proxy = other_proxy(window, call.peer);
    taken = window.mapped && (few || small) && proxy != nullptr && target.loose == target.flushed &&
            (small || target.in_a_row < ways::most_in_a_row);
    if (!taken) return std::nullopt;
    engine::DirectAccess request;
    static_cast<rma::Access&>(request) = access;
    request.job = cluster_.job();
    request.team = window.team;
    request.window = window.id;
    request.origin = profile_.communicators[static_cast<std::size_t>(window.comm)].rank;
    request.origin_job = rank_;
    const bool later = small && (!few || target.in_a_row >= ways::most_in_a_row);
    ++target.in_a_row;
    target.bundled.push_back(request);
    if (later) return std::nullopt;
    if (few) window.batch.bytes += moved;
    return Operation{{},    fmt::format("{} at rank {} of its window", call.name, call.peer),
                     false, true,
                     proxy, std::exchange(target.bundled, {})};
}

std::optional<Operation> PlayedWindows::access(const ProfiledCall& call, rma::OpKind kind, bool has_request,
                                               Time now) {
    Window& its = window(call);
    engine::OneSidedCall access;
    access.kind = kind;
    access.target = static_cast<std::uint32_t>(call.peer);
    access.bytes = call.bytes;
    if (rma::is_update(kind)) {
        const auto type = call.bytes % 8 == 0 ? schedule::DataType::float64 : schedule::DataType::uint8;
        access.type = static_cast<std::uint8_t>(type);
        access.reduction = static_cast<std::uint8_t>(schedule::Reduction::sum);
    }
    const bool on_device = way_of(its, call, kind, now) == Way::device;
    Target& target = its.targets[access.target];
    target.host |= !on_device;
    if (on_device && !has_request) {
        bool taken = false;
        std::optional<Operation> operation = shortly(its, call, access, taken);
        if (taken) return operation;
    }
    access.origin = Buffer(cluster_, access.operand_bytes()).range();
    access.result = Buffer(cluster_, access.result_bytes()).range();
    if (on_device && profile_.allocates) access.origin.region = access.result.region = 1;
    if (on_device && !has_request) ++target.loose;
    return Operation{
        [window = on_device ? its.device : its.library, access](engine::Engine& engine, Completion* done) {
            return engine.one_sided(*window, access, done);
        },
        fmt::format("{} at rank {} of its window", call.name, call.peer), !on_device, true};
}

std::vector<Request*>& PlayedWindows::answers(const ProfiledCall& call) {
    return window(call).answers;
}

std::vector<Operation> PlayedWindows::bundles(const ProfiledCall& call) {
    Window& its = window(call);
    std::vector<Operation> found;
    for (std::size_t i = 0; i < its.targets.size(); ++i) {
        Target& target = its.targets[i];
        if (call.peer >= 0 && static_cast<std::size_t>(call.peer) != i) continue;
        target.in_a_row = 0;
        if (target.bundled.empty()) continue;
        found.push_back({{},
                         fmt::format("what {} waits for", call.name),
                         false,
                         true,
                         other_proxy(its, static_cast<std::int32_t>(i)),
                         std::exchange(target.bundled, {})});
    }
    return found;
}

std::vector<Operation> PlayedWindows::flush(const ProfiledCall& call) {
    Window& its = window(call);
    const std::uint32_t which = call.peer < 0 ? engine::every_target : static_cast<std::uint32_t>(call.peer);
    const auto of = [&](engine::Window* window, bool on_host) {
        return Operation{[window, which](engine::Engine& engine, Completion* done) {
                             return engine.flush_window(*window, which, done);
                         },
                         fmt::format("what {} waits for", call.name), on_host, true};
    };
    bool by_device = false, by_host = !its.adapts;
    for_targets(its, call.peer, [&](const Target& target) {
        by_device |= target.loose != target.flushed;
        by_host |= target.host;
    });
    std::vector<Operation> found;
    if (by_host) found.push_back(of(its.library, true));
    if (by_device) found.push_back(of(its.device, false));
    return found;
}

void PlayedWindows::flushed(const ProfiledCall& call, Time now) {
    Window& its = window(call);
    its.batch.flushed();
    if (its.epoch.trial != nullptr)
        its.epoch.trial->ended(its.epoch.way, its.epoch.operations, (now - its.epoch.began) / ns,
                               EpochTrial::stall_ns);
    its.epoch = {};
    for_targets(its, call.peer, [](Target& target) {
        target.flushed = target.loose;
        target.host = false;
        if (target.granted == Target::Granted::asked) target.granted = Target::Granted::yes;
    });
}

void PlayedWindows::tell(Window& window, Time now) {
    const std::uint64_t observed = (now - window.observed_since) / ns;
    const std::uint64_t inside = (inside_ - window.inside_before) / ns;
    const bool blocked = std::any_of(window.targets.begin(), window.targets.end(),
                                     [](const Target& target) { return target.locked; });
    meetings_.tell(window.id, ++window.meetings, {observed, observed - std::min(inside, observed)}, blocked);
    meeting_.push_back(&window);
}

bool PlayedWindows::meets(std::int32_t comm, bool is_barrier, Time now) {
    meeting_.clear();
    const auto here = [comm](const Window& window) {
        return window.adapts && window.live && window.comm == comm;
    };
    if (std::none_of(windows_.begin(), windows_.end(), here) || !(is_barrier || paces_[comm].due()))
        return false;
    for (Window& window : windows_)
        if (here(window)) tell(window, now);
    return true;
}

bool PlayedWindows::meets_in_fence(const ProfiledCall& call, Time now) {
    Window& its = window(call);
    meeting_.clear();
    if (!its.adapts || (its.way == Way::host && !its.fences.due())) return false;
    tell(its, now);
    return true;
}

std::uint64_t PlayedWindows::bytes_told() const {
    constexpr std::uint64_t bytes_of_window = 32;
    return bytes_of_window * meeting_.size();
}

std::vector<std::int32_t> PlayedWindows::choose(Time now) {
    std::vector<std::int32_t> changed;
    for (Window* window : meeting_) {
        const Meetings::Told all = meetings_.take(window->id, window->meetings, window->targets.size());
        if (all.blocked || !ways::WayChoice::is_enough(all.most)) continue;
        const Way next = window->choice.next(all.most);
        observe(*window, now);
        if (next == window->way) continue;
        window->way = next;
        window->fences.restart();
        paces_[window->comm].restart();
        window->epoch = {};
        for (Target& target : window->targets)
            target.granted = Target::Granted::no;
        changed.push_back(static_cast<std::int32_t>(window - windows_.data()));
    }
    return changed;
}

}  // namespace offpath::sim
