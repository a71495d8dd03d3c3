#include "sim/servers/turns.h"

#include <algorithm>
#include <utility>

namespace offpath::sim {
namespace {

// After so many turns that nobody noticed, any process may run.
constexpr Time most_followed = 32;

}  // namespace

const Turns::Member* Turns::find(Process process) const {
    const auto found = std::ranges::find(members_, process, &Member::process);
    return found == members_.end() ? nullptr : &*found;
}

std::size_t Turns::next() const {
    return static_cast<std::size_t>(std::ranges::min_element(members_, {}, &Member::had) - members_.begin());
}

double Turns::least_had() const {
    return members_.empty() ? 0 : members_[next()].had;
}

void Turns::join(Process process) {
    catch_up();
    if (takes_part(process)) return;
    // Of those that begin together, one that begins later has had more: each time that it looked and gave the
    // core away, it lost a part of its share.
    std::uniform_real_distribution<double> lost(0, members_.empty() ? 0.0 : 0.5);
    members_.push_back({process, least_had() + lost(random_)});
    if (members_.size() == 1) begin_turn(0, queue_.now());
    plan();
}

void Turns::wake(Process process) {
    catch_up();
    if (!members_.empty() && members_[running_].process == process) return;
    const double least = least_had();
    std::erase_if(members_, [&](const Member& one) { return one.process == process; });
    members_.push_back({process, least + difference()});
    begin_turn(members_.size() - 1, queue_.now());
    call(process);
    plan();
}

void Turns::leave(Process process) {
    catch_up();
    const Member* const found = find(process);
    if (found == nullptr) return;
    const auto which = static_cast<std::size_t>(found - members_.data());
    const bool ran = which == running_;
    members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(which));
    if (which < running_) --running_;
    call(process);
    if (members_.empty()) {
        core_.run(nullptr);
    } else if (ran) {
        begin_turn(next(), queue_.now());
        call(members_[running_].process);
    }
    plan();
}

bool Turns::runs(Process process) {
    catch_up();
    return !members_.empty() && members_[running_].process == process;
}

void Turns::when_it_runs(Process process, EventQueue::Action action, void* object, std::uint64_t argument) {
    if (runs(process)) return queue_.at(queue_.now(), action, object, argument);
    waiting_[process].push_back({action, object, argument});
    plan();
}

void Turns::changed() {
    catch_up();
    plan();
}

void Turns::begin_turn(std::size_t whose, Time time) {
    running_ = whose;
    began_ = time;
    ends_at_ = (time + length_ * 2 / 5 + length_ - 1) / length_ * length_;
    core_.run(members_[whose].process);
}

void Turns::change(Time time) {
    members_[running_].had +=
        static_cast<double>(time - began_) / static_cast<double>(length_) + difference();
    begin_turn(next(), time);
}

void Turns::catch_up() {
    if (planned_ || members_.size() < 2 || queue_.now() < ends_at_) return;
    if ((queue_.now() - ends_at_) / length_ > most_followed) {
        for (Member& one : members_)
            one.had = difference();
        began_ = ends_at_ = queue_.now() / length_ * length_;
    }
    while (ends_at_ <= queue_.now())
        change(ends_at_);
}

void Turns::call(Process process) {
    const auto found = waiting_.find(process);
    if (found == waiting_.end()) return;
    const std::vector<Waiting> its = std::exchange(found->second, {});
    waiting_.erase(found);
    for (const Waiting& one : its)
        queue_.at(queue_.now(), one.action, one.object, one.argument);
}

void Turns::plan() {
    const bool matters = members_.size() > 1 && (core_.computes() || !waiting_.empty());
    if (!matters) {
        if (std::exchange(planned_, false)) ++generation_;
        return;
    }
    if (planned_ && planned_at_ == ends_at_) return;
    planned_ = true;
    planned_at_ = ends_at_;
    queue_.at(ends_at_, &Turns::end_turn, this, ++generation_);
}

void Turns::end_turn(void* self, std::uint64_t generation) {
    auto& turns = *static_cast<Turns*>(self);
    if (generation != turns.generation_) return;
    turns.planned_ = false;
    // What the process does in one step is not interrupted.
    if (turns.core_.free_at() > turns.queue_.now()) {
        turns.ends_at_ = turns.core_.free_at();
    } else {
        turns.change(turns.queue_.now());
        turns.call(turns.members_[turns.running_].process);
    }
    turns.plan();
}

}  // namespace offpath::sim
