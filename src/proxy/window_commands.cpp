// Session's execution of commands for windows.
#include "base/log.h"
#include "proxy/session.h"
#include "proxy/traced.h"

#include <utility>

namespace offpath::proxy {
namespace {

constexpr std::size_t max_windows = 1 << 16;
// The most operations that no request watches; a client flushes long before.
constexpr std::uint32_t max_unwatched = 1 << 18;

constinit trace::Name flush_in_trace("flush");

}  // namespace

Session::WindowEntry* Session::find_window(std::uint64_t team, std::uint64_t window) {
    const auto found = windows_.find({team, window});
    if (found != windows_.end()) return &found->second;
    problem_ = fmt::format("a command for window {} of team {:x}, which there is not", window, team);
    return nullptr;
}

bool Session::execute(const control::CreateWindow& command) {
    const TeamEntry* team = find_team(command.team);
    if (team == nullptr) return false;
    if (windows_.contains({command.team, command.window}) || windows_.size() >= max_windows) {
        problem_ = fmt::format("window {} of team {:x} twice, or beyond the {} that are accepted",
                               command.window, command.team, max_windows);
        return false;
    }
    return perform(command.completion, [&](ClientOperation& operation) {
        WindowEntry entry;
        entry.failure = make_window(command, *team, operation, entry);
        const Status status = entry.failure;
        windows_.emplace(std::make_pair(command.team, command.window), std::move(entry));
        return status;
    });
}

// Sets the entry's window, pins and members on success only.
Status Session::make_window(const control::CreateWindow& command, const TeamEntry& team,
                            ClientOperation& operation, WindowEntry& entry) {
    if (team.failure != Status::ok) return team.failure;
    const std::uint64_t members = window_members * team.size;
    if (members_in_use_ + members > max_members) {
        log::error(Code::limit,
                   "{}: window {} of {} ranks is one too many: windows and teams have {} ranks in all", name_,
                   command.window, team.size, max_members);
        return Status::memory;
    }
    const memory::HostRange range = to_range(command.range);
    if (!pin(operation, range)) return Status::access;
    engine::Window* window = nullptr;
    if (Status status =
            engine_.create_window(*team.team, command.window, range, command.dynamic != 0, &window);
        status != Status::ok)
        return status;
    entry.window = window;
    // From here on the window owns the pin on the region.
    entry.pinned = std::exchange(operation.pinned, {});
    entry.members = members;
    members_in_use_ += members;
    return Status::ok;
}

bool Session::execute(const control::DestroyWindow& command) {
    WindowEntry* entry = find_window(command.team, command.window);
    return entry != nullptr && perform(command.completion, [&](ClientOperation& operation) {
               engine::Window* window = entry->window;
               members_in_use_ -= entry->members;
               operation.pinned = std::move(entry->pinned);
               for (const auto& [begin, ranges] : entry->attached)
                   operation.pinned.insert(operation.pinned.end(), ranges.begin(), ranges.end());
               windows_.erase({command.team, command.window});
               return window == nullptr ? Status::ok : engine_.destroy_window(*window, &operation);
           });
}

bool Session::execute(const control::AttachWindow& command) {
    WindowEntry* entry = find_window(command.team, command.window);
    return perform_on(entry, command.completion, [&](ClientOperation& operation) {
        const memory::HostRange range = to_range(command.range);
        if (!pin(operation, range)) return Status::access;
        const Status status = engine_.attach_window(*entry->window, range, command.begin);
        if (status == Status::ok) entry->attached[command.begin] = std::exchange(operation.pinned, {});
        return status;
    });
}

bool Session::execute(const control::DetachWindow& command) {
    WindowEntry* entry = find_window(command.team, command.window);
    return perform_on(entry, command.completion, [&](ClientOperation& operation) {
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
    if (watched ? !check_slot(command.completion) : !check_unwatched()) return false;
    begin(command.completion, [&](ClientOperation& operation) { return start(command, *entry, operation); });
    return true;
}

bool Session::check_unwatched() {
    if (unwatched_ < max_unwatched) return true;
    problem_ = fmt::format("more than {} operations on windows without a flush", max_unwatched);
    return false;
}

Status Session::start(const control::WindowOperation& command, WindowEntry& entry,
                      ClientOperation& operation) {
    engine::OneSidedCall call;
    static_cast<rma::Access&>(call) = command.access;
    call.origin = to_range(command.origin);
    call.result = to_range(command.result);
    call.inlined.assign(command.inlined.begin(), command.inlined.end());
    call.segments = segment_draft_;
    call.watched = command.completion != control::no_completion;
    const bool watched = call.watched;
    if (trace::on()) [[unlikely]]
        begin_trace(operation, name_in_trace(call.kind), call.origin.bytes + call.result.bytes,
                    trace::new_id());
    Status status = entry.failure;
    if (status == Status::ok && (!pin(operation, call.origin) || !pin(operation, call.result)))
        status = Status::access;
    if (status == Status::ok) status = engine_.one_sided(*entry.window, std::move(call), &operation);
    if (!is_error(status)) return status;
    log::error(Code::window, "{}: an operation on window {} of team {:x} was not started: {}", name_,
               command.window, command.team, to_string(status));
    // If no request watches the operation, the next flush reports the error.
    if (!watched && entry.window != nullptr)
        engine_.one_sided_failed(*entry.window, command.access.target, status);
    return status;
}

bool Session::execute(const control::FlushWindow& command) {
    WindowEntry* entry = find_window(command.team, command.window);
    return perform_on(entry, command.completion, [&](ClientOperation& operation) {
        note_begin(operation, flush_in_trace, 0);
        return engine_.flush_window(*entry->window, command.target, &operation);
    });
}

bool Session::execute(const control::KeepLedger& command) {
    WindowEntry* entry = find_window(command.team, command.window);
    return perform_on(entry, command.completion, [&](ClientOperation& operation) {
        const memory::HostRange range = to_range(command.range);
        if (!pin(operation, range)) return Status::access;
        const Status status = engine_.keep_ledger(*entry->window, range);
        // From here on the window owns the pin on the region.
        if (status == Status::ok) {
            entry->pinned.insert(entry->pinned.end(), operation.pinned.begin(), operation.pinned.end());
            operation.pinned.clear();
        }
        return status;
    });
}

}  // namespace offpath::proxy
