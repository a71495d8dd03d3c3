#include "sim/servers/core.h"

#include <algorithm>
#include <vector>

namespace offpath::sim {

Time Core::step(Time work) {
    settle();
    booked_until_ = std::max(booked_until_, queue_.now()) + work;
    booked_total_ += work;
    return booked_until_;  // jobs that end later than planned are planned again when their event comes
}

Time Core::booked_before_now() const {
    // Steps follow one another without a gap from now until the end of the last one.
    return booked_total_ - (booked_until_ > queue_.now() ? booked_until_ - queue_.now() : 0);
}

void Core::settle() {
    const Time booked = booked_before_now();
    const Time passed = queue_.now() - settled_at_, taken = booked - booked_at_settle_;
    settled_at_ = queue_.now();
    booked_at_settle_ = booked;
    const std::size_t among = sharers();
    if (among == 0) return;
    const Time share = (passed - std::min(taken, passed)) / among;
    for (auto& [id, job] : jobs_) {
        if (job.left == never || !advances(job)) continue;
        const Time done = std::min(share, job.left);
        job.left -= done;
        computed_ += done;
    }
}

std::size_t Core::sharers() const {
    if (!takes_turns_) return jobs_.size();
    return static_cast<std::size_t>(
        std::ranges::count_if(jobs_, [this](const auto& entry) { return advances(entry.second); }));
}

bool Core::computes() const {
    return std::ranges::any_of(jobs_, [](const auto& entry) { return entry.second.left != never; });
}

void Core::run(Process process) {
    settle();
    takes_turns_ = true;
    running_ = process;
    plan();
}

void Core::plan() {
    Time least = never;
    for (const auto& [id, job] : jobs_)
        if (advances(job)) least = std::min(least, job.left);
    ++generation_;
    if (least == never) return;
    const Time begin = std::max(booked_until_, queue_.now());
    queue_.at(begin + least * sharers(), &Core::look, this, generation_);
}

void Core::look(void* self, std::uint64_t generation) {
    auto& core = *static_cast<Core*>(self);
    if (generation != core.generation_) return;
    core.settle();
    std::vector<Job> over;
    // Shares are rounded down to whole picoseconds, so a job may be short of its end by one for each job.
    std::erase_if(core.jobs_, [&](const auto& entry) {
        if (entry.second.left == never || entry.second.left > core.jobs_.size()) return false;
        over.push_back(entry.second);
        return true;
    });
    core.plan();
    for (const Job& job : over)
        job.action(job.object, job.argument);
}

Core::JobId Core::compute(Time work, EventQueue::Action action, void* object, std::uint64_t argument,
                          Process process) {
    settle();
    jobs_.emplace(++last_, Job{work, action, object, argument, process});
    plan();
    return last_;
}

Core::JobId Core::poll() {
    settle();
    jobs_.emplace(++last_, Job{});
    plan();
    return last_;
}

void Core::stop(JobId job) {
    settle();
    jobs_.erase(job);
    plan();
}

}  // namespace offpath::sim
