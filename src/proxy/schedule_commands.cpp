// Session's execution of commands for schedules.
#include "base/log.h"
#include "proxy/session.h"

namespace offpath::proxy {

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
    ClientOperation& operation = take_operation(command.completion);
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

}  // namespace offpath::proxy
