// Session's execution of commands for schedules.
#include "base/log.h"
#include "proxy/session.h"

namespace offpath::proxy {
namespace {

constinit trace::Name schedule_in_trace("schedule");

}  // namespace

bool Session::execute(const control::SchedulePart& command) {
    std::string failure;
    if (!schedules_.add_part(command, problem_, failure)) return false;
    if (!failure.empty())
        log::error(Code::malformed, "{}: schedule {} cannot be used: {}", name_, command.schedule, failure);
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
    const TeamEntry* team = find_team(command.team);
    if (team == nullptr) return false;
    StoredSchedule* schedule = schedules_.find(command.schedule);
    if (schedule == nullptr) {
        problem_ = fmt::format("start of schedule {}, which is not registered", command.schedule);
        return false;
    }
    return perform(command.completion, [&](ClientOperation& operation) {
        operation.schedule = schedule;
        ++schedule->running;
        return start(command, *team, *schedule, operation);
    });
}

Status Session::start(const control::Start& command, const TeamEntry& team, StoredSchedule& schedule,
                      ClientOperation& operation) {
    if (schedule.failure != Status::ok) return schedule.failure;
    if (team.failure != Status::ok) return team.failure;
    const schedule::Schedule& graph = schedule.plan->schedule();
    bool fits = graph.rank() == team.rank && graph.team_size() == team.size &&
                start_draft_.size() == schedule.slot_bytes.size();
    for (std::size_t i = 0; fits && i < start_draft_.size(); ++i)
        fits = start_draft_[i].bytes >= schedule.slot_bytes[i];
    if (!fits) {
        log::error(Code::malformed,
                   "{}: schedule {} does not fit the team or the {} buffers that it was started with", name_,
                   command.schedule, start_draft_.size());
        return Status::invalid;
    }
    if (trace::on()) [[unlikely]]
        begin_trace(operation, schedule_in_trace, 0,
                    trace::id_of_start(command.team, team.rank, command.sequence));
    for (const memory::HostRange& range : start_draft_)
        if (!pin(operation, range)) return Status::access;
    return engine_.start(*team.team, *schedule.plan, command.sequence, start_draft_, &operation,
                         channel_->parts(command.completion));
}

}  // namespace offpath::proxy
