// Session's execution of commands for windows.
#include "base/log.h"
#include "proxy/session.h"

#include <utility>

namespace offpath::proxy {
namespace {

constexpr std::size_t max_windows = 1 << 16;
// The most operations that no request watches; a client flushes long before.
constexpr std::uint32_t max_unwatched = 1 << 18;

}  // namespace

Session::WindowEntry* Session::find_window(std::uint64_t team, std::uint64_t window) {
    const auto found = windows_.find({team, window});
    if (found != windows_.end()) return &found->second;
    problem_ = fmt::format("a command for window {} of team {:x}, which there is not", window, team);
    return nullptr;
}

bool Session::execute(const control::CreateWindow& command) {
    TeamEntry* team = find_team(command.team);
    if (team == nullptr || !check_slot(command.completion)) return false;
    if (windows_.contains({command.team, command.window}) || windows_.size() >= max_windows) {
        problem_ = fmt::format("window {} of team {:x} twice, or beyond the {} that are accepted",
                               command.window, command.team, max_windows);
        return false;
    }
    ClientOperation& operation = take_operation(command.completion);
    const memory::HostRange range = to_range(command.range);
    WindowEntry entry;
    Status status = team->failure;
    const std::uint64_t members = window_members * team->size;
    if (status == Status::ok && members_in_use_ + members > max_members) {
        log::error("{}: window {} of {} ranks is one too many: windows and teams have {} ranks in all", name_,
                   command.window, team->size, max_members);
        status = Status::memory;
    }
    if (status == Status::ok && !pin(operation, range)) status = Status::access;
    if (status == Status::ok)
        status =
            engine_.create_window(*team->team, command.window, range, command.dynamic != 0, &entry.window);
    if (status == Status::ok) {
        // From here on the window owns the pin on the region.
        entry.pinned = std::move(operation.pinned);
        operation.pinned.clear();
        entry.members = members;
        members_in_use_ += members;
    } else {
        entry.window = nullptr;
        entry.failure = status;
    }
    windows_.emplace(std::make_pair(command.team, command.window), std::move(entry));
    settle(operation, status);
    return true;
}

bool Session::execute(const control::DestroyWindow& command) {
    WindowEntry* entry = find_window(command.team, command.window);
    if (entry == nullptr || !check_slot(command.completion)) return false;
    ClientOperation& operation = take_operation(command.completion);
    engine::Window* window = entry->window;
    members_in_use_ -= entry->members;
    operation.pinned = std::move(entry->pinned);
    for (const auto& [begin, ranges] : entry->attached)
        operation.pinned.insert(operation.pinned.end(), ranges.begin(), ranges.end());
    windows_.erase({command.team, command.window});
    const Status status = window == nullptr ? Status::ok : engine_.destroy_window(*window, &operation);
    if (status != Status::in_progress) settle(operation, status);
    return true;
}

bool Session::execute(const control::AttachWindow& command) {
    WindowEntry* entry = find_window(command.team, command.window);
    return perform(entry, command.completion, [&](ClientOperation& operation) {
        const memory::HostRange range = to_range(command.range);
        if (!pin(operation, range)) return Status::access;
        const Status status = engine_.attach_window(*entry->window, range, command.begin);
        if (status == Status::ok) entry->attached[command.begin] = std::exchange(operation.pinned, {});
        return status;
    });
}

bool Session::execute(const control::DetachWindow& command) {
    WindowEntry* entry = find_window(command.team, command.window);
    return perform(entry, command.completion, [&](ClientOperation& operation) {
        const auto attached = entry->attached.find(command.begin);
        if (attached == entry->attached.end()) return Status::invalid;
        operation.pinned = std::move(attached->second);
        entry->attached.erase(attached);
        return engine_.detach_window(*entry->window, command.begin, &operation);
    });
}

bool Session::execute(const control::WindowOperation& command) {
    WindowEntry* entry = find_window(command.team, command.window);
    if (entry == nullptr) return false;
    if (command.first == 0) segment_draft_.clear();
    if (command.first != segment_draft_.size()) {
        problem_ = fmt::format("segments from {} on of an operation where {} were due", command.first,
                               segment_draft_.size());
        return false;
    }
    for (std::size_t i = 0; i < command.part.size(); ++i)
        segment_draft_.push_back(command.part[i]);
    if (segment_draft_.size() < command.segments) return true;
    const bool watched = command.completion != control::no_completion;
    if (watched && !check_slot(command.completion)) return false;
    if (!watched && unwatched_ >= max_unwatched) {
        problem_ = fmt::format("more than {} operations on windows without a flush", max_unwatched);
        return false;
    }
    engine::OneSidedCall call;
    static_cast<rma::Access&>(call) = command.access;
    call.origin = to_range(command.origin);
    call.result = to_range(command.result);
    call.inlined.assign(command.inlined.begin(), command.inlined.end());
    call.segments = segment_draft_;
    call.watched = watched;
    ClientOperation& operation = take_operation(command.completion);
    Status status = entry->failure;
    if (status == Status::ok && (!pin(operation, call.origin) || !pin(operation, call.result)))
        status = Status::access;
    if (status == Status::ok) status = engine_.one_sided(*entry->window, std::move(call), &operation);
    if (is_error(status)) {
        log::error("{}: an operation on window {} of team {:x} was not started: {}", name_, command.window,
                   command.team, to_string(status));
        // If no request watches the operation, the next flush reports the error.
        if (!watched && entry->window != nullptr)
            engine_.one_sided_failed(*entry->window, command.access.target, status);
    }
    if (status != Status::in_progress) settle(operation, status);
    return true;
}

bool Session::execute(const control::FlushWindow& command) {
    WindowEntry* entry = find_window(command.team, command.window);
    return perform(entry, command.completion, [&](ClientOperation& operation) {
        return engine_.flush_window(*entry->window, command.target, &operation);
    });
}

}  // namespace offpath::proxy
