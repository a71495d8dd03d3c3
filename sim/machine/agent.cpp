#include "sim/machine/agent.h"

#include "sim/machine/cluster.h"

#include <utility>

namespace offpath::sim {

void Agent::serve(Time time, double seconds, std::function<void()> then) {
    const Time comes = std::max(time, cluster_.queue().now());
    coming_.emplace(comes, Task{seconds, std::move(then)});
    cluster_.queue().at(comes, &Agent::come, this);
}

void Agent::come(void* self, std::uint64_t) {
    auto& agent = *static_cast<Agent*>(self);
    const auto first = agent.coming_.begin();
    agent.here_.push_back(std::move(first->second));
    agent.coming_.erase(first);
    if (std::exchange(agent.awake_, true)) return;
    const bool core_sleeps = agent.core_.free_at() < agent.cluster_.queue().now();
    agent.cluster_.queue().after(core_sleeps ? from_seconds(agent.cluster_.platform().wake_s) : 0,
                                 &Agent::work, self);
}

void Agent::work(void* self, std::uint64_t) {
    auto& agent = *static_cast<Agent*>(self);
    const double switching_s = agent.core_.taken_by(self) ? agent.cluster_.platform().host.switch_s : 0;
    const Time end = agent.core_.step(from_seconds(switching_s + agent.here_.front().seconds));
    agent.cluster_.queue().at(end, &Agent::finish, self);
}

void Agent::finish(void* self, std::uint64_t) {
    auto& agent = *static_cast<Agent*>(self);
    const std::function<void()> then = std::move(agent.here_.front().then);
    agent.here_.pop_front();
    then();
    agent.awake_ = !agent.here_.empty();
    if (agent.awake_) work(self, 0);
}

}  // namespace offpath::sim
