// The tenant's part in a round, and what it does when sessions end and ranks are lost.
#include "engine/schedules/schedules.h"

namespace offpath::engine {

std::unique_ptr<TeamPart> Schedules::join(Team& /*team*/) {
    return std::make_unique<SchedulesOfTeam>();
}

bool Schedules::advance() {
    bool moved = false;
    for (std::size_t n = runnable_.size(); n > 0; --n) {
        Instance* instance = runnable_.front();
        runnable_.pop_front();
        instance->queued = false;
        moved |= run_ready(*instance);
    }
    moved |= reduce_ops_.pump();
    return moved;
}

bool Schedules::finish() {
    bool moved = false;
    while (!finished_.empty()) {
        std::vector<Instance*> batch;
        batch.swap(finished_);
        for (Instance* instance : batch)
            end(*instance);
        moved = true;
    }
    return moved;
}

void Schedules::end(Instance& instance) {
    Team& team = *instance.team;
    Completion* done = instance.done;
    const Status status = instance.status;
    auto& instances = SchedulesOfTeam::of(team).instances;
    const auto it = instances.find(instance.sequence);
    std::unique_ptr<Instance> owned = std::move(it->second);
    instances.erase(it);
    const Plan* plan = owned->plan;
    for (ScratchPool::Buffer& buffer : owned->scratch)
        scratch_.give_back(std::move(buffer));
    owned->scratch.clear();
    plan->give_back(std::move(owned));
    (is_error(status) ? core_.counters.instances_failed : core_.counters.instances_done)++;
    if (done != nullptr) (*done)(status);
    core_.settle(team);
}

void Schedules::cancel(Session& session, Status reason) {
    for (auto& team : session.teams) {
        std::vector<Instance*> running;
        for (auto& [sequence, instance] : SchedulesOfTeam::of(*team).instances)
            running.push_back(instance.get());
        for (Instance* instance : running)
            fail(*instance, reason, true);
    }
}

// A schedule involves all ranks of its team, so it fails without any of them.
void Schedules::ranks_gone(Team& team, const RanksGone& /*gone*/) {
    std::vector<Instance*> running;
    for (auto& [sequence, instance] : SchedulesOfTeam::of(team).instances)
        running.push_back(instance.get());
    for (Instance* instance : running)
        fail(*instance, Status::peer_lost, true);
}

std::size_t Schedules::outstanding(const Session& session) const {
    std::size_t count = 0;
    for (const auto& team : session.teams)
        count += SchedulesOfTeam::of(*team).instances.size();
    return count;
}

void Schedules::mark_awaited(const Session& session) const {
    for (const auto& team : session.teams)
        if (!SchedulesOfTeam::of(*team).instances.empty()) team->mark_awaited();
}

void Schedules::trim() {
    reduce_ops_.trim();
    scratch_.clear();
}

}  // namespace offpath::engine
