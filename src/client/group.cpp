// The group primitives of the C API: a recorder that turns sends, receives and barriers into one schedule.
#include "base/log.h"
#include "client/caught.h"
#include "client/context.h"
#include "schedule/builder.h"
#include "schedule/validate.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

using namespace offpath;
using namespace offpath::client;

namespace {

using Step = offpath_group::Step;

// Writes the recorded steps down as ops. Messages with the same peer, direction and tag are numbered in the
// order of recording; the peer numbers its own alike, so they meet.
class GroupWriter {
  public:
    explicit GroupWriter(offpath_group& group)
        : group_(group), builder_(group.team->rank, group.team->size) {}

    schedule::Schedule write() {
        for (const Step& step : group_.steps) {
            if (step.kind == Step::Kind::barrier) {
                join();
            } else {
                message(step);
            }
        }
        return builder_.finish();
    }

  private:
    void message(const Step& step) {
        const bool sends = step.kind == Step::Kind::send;
        const std::uint64_t tag =
            std::uint64_t{step.tag} << 32 | occurrences_[{sends, step.peer, step.tag}]++;
        const schedule::BufferRef place{slot(step), 0};
        const schedule::OpId op = sends ? builder_.send(step.peer, tag, place, step.bytes)
                                        : builder_.recv(step.peer, tag, place, step.bytes);
        if (gate_) builder_.depend(op, *gate_);
        open_.push_back(op);
    }

    // One signal to oneself gathers what came before, and the wait for it holds back what follows: so many
    // edges instead of their product.
    void join() {
        if (open_.empty()) return;
        const schedule::OpId gather = builder_.signal(group_.team->rank, barriers_);
        for (schedule::OpId op : open_)
            builder_.depend(gather, op);
        const schedule::OpId gate = builder_.wait(barriers_, 1);
        builder_.depend(gate, gather);
        ++barriers_;
        gate_ = gate;
        open_.clear();
    }

    std::uint32_t slot(const Step& step) {
        const auto [at, is_new] = slots_.try_emplace({step.buffer, step.bytes}, 0);
        if (is_new) {
            at->second = builder_.user_slot(step.bytes);
            group_.buffers.push_back({step.buffer, step.bytes});
        }
        return at->second;
    }

    offpath_group& group_;
    schedule::Builder builder_;
    std::map<std::tuple<bool, std::uint32_t, std::uint32_t>, std::uint32_t> occurrences_;
    std::map<std::pair<void*, std::size_t>, std::uint32_t> slots_;
    std::vector<schedule::OpId> open_;
    std::optional<schedule::OpId> gate_;
    std::uint64_t barriers_ = 0;
};

offpath_status_t record(offpath_group_h group, Step step) {
    if (group == nullptr) return OFFPATH_ERR_INVALID;
    offpath_context& context = *group->team->context;
    auto guard = context.lock();
    const char* wrong = nullptr;
    if (group->state != offpath_group::State::recording) {
        wrong = "its recording has ended";
    } else if (step.kind != Step::Kind::barrier) {
        if (step.peer >= group->team->size) wrong = "the peer is not in the team";
        if (step.tag == OFFPATH_ANY_TAG || (step.buffer == nullptr && step.bytes != 0) ||
            step.bytes > schedule::max_slot_bytes)
            wrong = "the tag, the buffer or the size is not accepted";
    }
    if (wrong != nullptr) {
        log::error("a step of a group cannot be recorded: {}", wrong);
        return OFFPATH_ERR_INVALID;
    }
    group->steps.push_back(step);
    return OFFPATH_OK;
}

}  // namespace

extern "C" {

offpath_status_t offpath_group_create(offpath_team_h team, offpath_group_h* group) try {
    if (team == nullptr || team->destroyed || group == nullptr) return OFFPATH_ERR_INVALID;
    auto guard = team->context->lock();
    auto made = std::make_unique<offpath_group>();
    made->team = team;
    ++team->groups;
    *group = made.get();
    team->context->groups.emplace(*group, std::move(made));
    return OFFPATH_OK;
} catch (...) {
    return caught("offpath_group_create");
}

offpath_status_t offpath_group_send(offpath_group_h group, const void* buffer, size_t bytes, uint32_t dest,
                                    uint32_t tag) try {
    return record(group, {Step::Kind::send, dest, tag, const_cast<void*>(buffer), bytes});
} catch (...) {
    return caught("offpath_group_send");
}

offpath_status_t offpath_group_recv(offpath_group_h group, void* buffer, size_t bytes, uint32_t source,
                                    uint32_t tag) try {
    return record(group, {Step::Kind::recv, source, tag, buffer, bytes});
} catch (...) {
    return caught("offpath_group_recv");
}

offpath_status_t offpath_group_barrier(offpath_group_h group) try {
    return record(group, {Step::Kind::barrier, 0, 0, nullptr, 0});
} catch (...) {
    return caught("offpath_group_barrier");
}

offpath_status_t offpath_group_end(offpath_group_h group) try {
    if (group == nullptr || group->state != offpath_group::State::recording) return OFFPATH_ERR_INVALID;
    offpath_context& context = *group->team->context;
    auto guard = context.lock();
    const schedule::Schedule schedule = GroupWriter(*group).write();
    group->state = offpath_group::State::unusable;
    std::string problem;
    if (Status status = schedule::validate(schedule, problem); status != Status::ok) {
        log::error("offpath_group_end: {}", problem);
        return to_c(status);
    }
    if (Status status = context.schedules.add(schedule, group->schedule); status != Status::ok)
        return to_c(status);
    context.ring();
    for (const auto& buffer : group->buffers) {
        const auto begin = reinterpret_cast<std::uintptr_t>(buffer.address);
        group->used.push_back({begin, begin + buffer.bytes});
    }
    group->steps = {};
    group->state = offpath_group::State::ready;
    return OFFPATH_OK;
} catch (...) {
    return caught("offpath_group_end");
}

offpath_status_t offpath_group_start(offpath_group_h group) try {
    if (group == nullptr || group->state != offpath_group::State::ready || group->team->destroyed)
        return OFFPATH_ERR_INVALID;
    if (offpath_group_test(group) == OFFPATH_IN_PROGRESS) {
        log::error("offpath_group_start: its previous start is not done");
        return OFFPATH_ERR_INVALID;
    }
    offpath_context& context = *group->team->context;
    auto guard = context.lock();
    if (group->latest != nullptr) context.requests.free(group->latest);
    group->latest = nullptr;
    group->ranges.clear();
    for (const auto& buffer : group->buffers)
        group->ranges.push_back(context.resolve(buffer.address, buffer.bytes));
    return to_c(
        context.start(*group->team, group->schedule, group->ranges, group->used, nullptr, &group->latest));
} catch (...) {
    return caught("offpath_group_start");
}

offpath_status_t offpath_group_test(offpath_group_h group) {
    if (group == nullptr) return OFFPATH_ERR_INVALID;
    return group->latest == nullptr ? OFFPATH_OK : offpath_request_test(group->latest);
}

offpath_status_t offpath_group_wait(offpath_group_h group) {
    if (group == nullptr) return OFFPATH_ERR_INVALID;
    return group->latest == nullptr ? OFFPATH_OK : offpath_request_wait(group->latest);
}

offpath_status_t offpath_group_destroy(offpath_group_h group) try {
    if (group == nullptr) return OFFPATH_ERR_INVALID;
    if (offpath_group_test(group) == OFFPATH_IN_PROGRESS) {
        log::error("offpath_group_destroy: it is running");
        return OFFPATH_ERR_INVALID;
    }
    offpath_context& context = *group->team->context;
    auto guard = context.lock();
    if (group->latest != nullptr) context.requests.free(group->latest);
    if (group->state == offpath_group::State::ready) context.schedules.forget(group->schedule);
    context.ring();
    release_group(*group->team);
    context.groups.erase(group);
    return OFFPATH_OK;
} catch (...) {
    return caught("offpath_group_destroy");
}
}
