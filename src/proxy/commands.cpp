// Session's execution of commands: each checks what the client said against what it has set up before.
#include "base/log.h"
#include "proxy/session.h"

#include <algorithm>

namespace offpath::proxy {
namespace {

constexpr std::size_t max_teams = 1 << 16;

}  // namespace

bool Session::execute(const control::AddProxy& command) {
    // An address that cannot be used makes the teams that need it fail, with their own message.
    if (Status status = engine_.add_proxy(*session_, command.proxy, command.address); status != Status::ok)
        log::error("{}: the address of proxy {:x} cannot be used: {}", name_, command.proxy,
                   to_string(status));
    return true;
}

bool Session::execute(const control::Ranks& command) {
    if (command.first + command.proxies.size() > proxies_.size()) {
        problem_ = fmt::format("ranks {} to {} of a job of {}", command.first,
                               command.first + command.proxies.size() - 1, proxies_.size());
        return false;
    }
    for (std::size_t i = 0; i < command.proxies.size(); ++i)
        proxies_[command.first + i] = command.proxies[i];
    return true;
}

bool Session::execute(const control::CreateTeam& command) {
    if (command.first == 0) {
        if (command.size > proxies_.size() || members_in_use_ + command.size > max_members) {
            problem_ =
                fmt::format("team {:x} has {} ranks; the job has {}, and all teams together may have {} more",
                            command.team, command.size, proxies_.size(), max_members - members_in_use_);
            return false;
        }
        team_draft_ = {command.team, command.rank, {}};
    }
    if (command.team != team_draft_.id || command.first != team_draft_.ranks.size() ||
        teams_.contains(command.team) || teams_.size() >= max_teams) {
        problem_ = fmt::format("team {:x} in the wrong order, or twice, or beyond the {} that are accepted",
                               command.team, max_teams);
        return false;
    }
    for (std::size_t i = 0; i < command.ranks.size(); ++i)
        team_draft_.ranks.push_back(command.ranks[i]);
    if (team_draft_.ranks.size() < command.size) return true;
    TeamEntry entry;
    entry.rank = command.rank;
    entry.size = command.size;
    make_team(command.team, entry);
    teams_.emplace(command.team, entry);
    members_in_use_ += entry.size;
    return true;
}

void Session::make_team(std::uint64_t id, TeamEntry& entry) {
    members_.clear();
    for (std::uint32_t rank : team_draft_.ranks) {
        const engine::ProxyId proxy = rank < proxies_.size() ? proxies_[rank] : 0;
        members_.push_back({proxy, rank});
    }
    entry.failure = engine_.create_team(*session_, id, entry.rank, members_, &entry.team);
    if (entry.failure == Status::ok) {
        if (teams_.empty()) engine_.greet(*session_);  // the first team is of all ranks
        return;
    }
    entry.team = nullptr;
    log::error("{}: team {:x} of {} ranks cannot be made: {}", name_, id, entry.size,
               to_string(entry.failure));
}

bool Session::execute(const control::DestroyTeam& command) {
    TeamEntry* entry = find_team(command.team);
    if (entry == nullptr) return false;
    if (entry->team != nullptr) engine_.destroy_team(entry->team);
    members_in_use_ -= entry->size;
    teams_.erase(command.team);
    return true;
}

bool Session::execute(const control::SchedulePart& command) {
    std::string failure;
    if (!schedules_.add_part(command, problem_, failure)) return false;
    if (!failure.empty()) log::error("{}: schedule {} cannot be used: {}", name_, command.schedule, failure);
    return true;
}

bool Session::execute(const control::ForgetSchedule& command) {
    if (schedules_.forget(command.schedule)) return true;
    problem_ = fmt::format("schedule {} is to be forgotten, but there is none", command.schedule);
    return false;
}

bool Session::execute(const control::Start& command) {
    if (command.first == 0) start_draft_.clear();
    if (command.first != start_draft_.size()) {
        problem_ = fmt::format("buffers from {} on of a start where {} were due", command.first,
                               start_draft_.size());
        return false;
    }
    for (std::size_t i = 0; i < command.ranges.size(); ++i)
        start_draft_.push_back(to_range(command.ranges[i]));
    return start_draft_.size() < command.buffers || start_whole(command);
}

bool Session::start_whole(const control::Start& command) {
    TeamEntry* team = find_team(command.team);
    StoredSchedule* schedule = schedules_.find(command.schedule);
    if (team == nullptr || !check_slot(command.completion)) return false;
    if (schedule == nullptr) {
        problem_ = fmt::format("start of schedule {}, which is not registered", command.schedule);
        return false;
    }
    Operation& operation = take_operation(command.completion);
    operation.schedule = schedule;
    ++schedule->running;
    Status status = schedule->failure != Status::ok ? schedule->failure : team->failure;
    if (status == Status::ok) {
        const schedule::Schedule& graph = schedule->plan->schedule();
        bool fits = graph.rank() == team->rank && graph.team_size() == team->size &&
                    start_draft_.size() == schedule->slot_bytes.size();
        for (std::size_t i = 0; fits && i < start_draft_.size(); ++i)
            fits = start_draft_[i].bytes >= schedule->slot_bytes[i];
        if (!fits) {
            log::error("{}: schedule {} does not fit the team or the {} buffers that it was started with",
                       name_, command.schedule, start_draft_.size());
            status = Status::invalid;
        }
    }
    for (std::size_t i = 0; status == Status::ok && i < start_draft_.size(); ++i) {
        if (!pin(operation, start_draft_[i])) status = Status::access;
    }
    if (status == Status::ok)
        status = engine_.start(*team->team, *schedule->plan, command.sequence, start_draft_, &operation);
    if (status != Status::in_progress) settle(operation, status);
    return true;
}

bool Session::execute(const control::BasicSend& command) {
    TeamEntry* team = find_team(command.team);
    if (team == nullptr || !check_slot(command.completion)) return false;
    Operation& operation = take_operation(command.completion);
    Status status = team->failure;
    const memory::HostRange range = to_range(command.range);
    if (status == Status::ok && command.peer >= team->size) status = Status::invalid;
    if (status == Status::ok && !pin(operation, range)) status = Status::access;
    if (status == Status::ok)
        status = engine_.send(*team->team, range, command.peer, command.tag, &operation);
    if (status != Status::in_progress) settle(operation, status);
    return true;
}

bool Session::execute(const control::BasicRecv& command) {
    TeamEntry* team = find_team(command.team);
    if (team == nullptr || !check_slot(command.completion)) return false;
    Operation& operation = take_operation(command.completion);
    operation.receives = true;
    Status status = team->failure;
    const memory::HostRange range = to_range(command.range);
    if (status == Status::ok && command.peer >= team->size && command.peer != UINT32_MAX)
        status = Status::invalid;
    if (status == Status::ok && !pin(operation, range)) status = Status::access;
    if (status == Status::ok)
        status = engine_.recv(*team->team, range, command.peer, command.tag, &operation.message, &operation);
    if (status != Status::in_progress) settle(operation, status);
    return true;
}

bool Session::check_slot(std::uint32_t slot) {
    if (slot < channel_->completions() && outstanding_ < channel_->completions()) return true;
    problem_ = fmt::format("completion {} with {} operations outstanding; {} are accepted", slot,
                           outstanding_, channel_->completions());
    return false;
}

Session::TeamEntry* Session::find_team(std::uint64_t id) {
    const auto found = teams_.find(id);
    if (found != teams_.end()) return &found->second;
    problem_ = fmt::format("a command for team {:x}, which there is not", id);
    return nullptr;
}

Session::Operation& Session::take_operation(std::uint32_t slot) {
    if (free_operations_.empty()) free_operations_.push_back(&operations_.emplace_back());
    Operation& operation = *free_operations_.back();
    free_operations_.pop_back();
    operation.function = &Session::on_done;
    operation.session = this;
    operation.schedule = nullptr;
    operation.slot = slot;
    operation.receives = false;
    operation.message = {};
    ++(slot == control::no_completion ? unwatched_ : outstanding_);
    return operation;
}

bool Session::pin(Operation& operation, const memory::HostRange& range) {
    if (range.bytes == 0) return true;
    const Status status = memory_->pin(range);
    if (status == Status::ok) {
        operation.pinned.push_back(range);
        return true;
    }
    log::error("{}: {} bytes at {:#x} of region {} cannot be used: {}", name_, range.bytes, range.address,
               range.region, to_string(status));
    return false;
}

void Session::on_done(Completion* completion, Status status) {
    Operation& operation = *static_cast<Operation*>(completion);
    operation.session->settle(operation, status);
}

void Session::settle(Operation& operation, Status status) {
    for (const memory::HostRange& range : operation.pinned)
        memory_->unpin(range);
    operation.pinned.clear();
    if (operation.schedule != nullptr) schedules_.release(*operation.schedule);
    if (operation.slot == control::no_completion) {
        --unwatched_;
        completed_some_ |= !revoking_.empty();
        free_operations_.push_back(&operation);
        return;
    }
    // The client may use the slot again as soon as it sees the word.
    if (operation.receives) {
        channel_->complete(operation.slot, status, operation.message.source, operation.message.tag,
                           operation.message.bytes);
    } else {
        channel_->complete(operation.slot, status);
    }
    --outstanding_;
    completed_some_ = true;
    free_operations_.push_back(&operation);
}

}  // namespace offpath::proxy
