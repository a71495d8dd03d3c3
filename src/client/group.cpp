// The group primitives of the C API: a recorder that turns sends, receives, kernels and barriers into one
// schedule.
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

// Turns the recorded steps into ops. Messages with the same peer, direction and tag are numbered in the order
// of recording. The peer numbers its messages in the same way, so they match.
class GroupWriter {
  public:
    explicit GroupWriter(offpath_group& group)
        : group_(group), builder_(group.team->rank, group.team->size) {}

    schedule::Schedule write() {
        for (const Step& step : group_.steps) {
            if (step.kind == Step::Kind::barrier) {
                join();
                continue;
            }
            const schedule::OpId op = step.kind == Step::Kind::compute ? compute(step) : message(step);
            if (gate_) builder_.depend(op, *gate_);
            open_.push_back(op);
            ops_.push_back(op);
        }
        for (const auto& [earlier, later] : group_.orders)
            builder_.depend(ops_[later], ops_[earlier]);
        return builder_.finish();
    }

  private:
    schedule::OpId message(const Step& step) {
        const bool sends = step.kind == Step::Kind::send;
        const std::uint64_t tag =
            std::uint64_t{step.tag} << 32 | occurrences_[{sends, step.peer, step.tag}]++;
        const schedule::BufferRef place{slot(step.buffer, step.bytes), 0};
        return sends ? builder_.send(step.peer, tag, place, step.bytes)
                     : builder_.recv(step.peer, tag, place, step.bytes);
    }

    schedule::OpId compute(const Step& step) {
        offpath_group::Call& recorded = group_.calls[step.call];
        schedule::KernelCall call{recorded.kernel, std::move(recorded.arguments), {}};
        for (const offpath_kernel_buffer_t& buffer : recorded.buffers)
            call.buffers.push_back({{slot(buffer.address, buffer.bytes), 0},
                                    buffer.bytes,
                                    static_cast<schedule::Access>(buffer.access)});
        return builder_.compute(std::move(call));
    }

    // The rank signals itself after all earlier ops, and the later ops depend on the wait for that signal.
    // This needs the sum of the two numbers of edges instead of their product.
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

    std::uint32_t slot(void* buffer, std::size_t bytes) {
        const auto [at, is_new] = slots_.try_emplace({buffer, bytes}, 0);
        if (is_new) {
            at->second = builder_.user_slot(bytes);
            group_.buffers.push_back({buffer, bytes});
        }
        return at->second;
    }

    offpath_group& group_;
    schedule::Builder builder_;
    std::map<std::tuple<bool, std::uint32_t, std::uint32_t>, std::uint32_t> occurrences_;
    std::map<std::pair<void*, std::size_t>, std::uint32_t> slots_;
    std::vector<schedule::OpId> ops_;  // by step
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
    } else if (step.kind == Step::Kind::send || step.kind == Step::Kind::recv) {
        if (step.peer >= group->team->size) wrong = "the peer is not in the team";
        if (step.tag == OFFPATH_ANY_TAG || (step.buffer == nullptr && step.bytes != 0) ||
            step.bytes > schedule::max_slot_bytes)
            wrong = "the tag, the buffer or the size is not accepted";
    }
    if (wrong != nullptr) {
        log::error(Code::arguments, "a step of a group cannot be recorded: {}", wrong);
        return OFFPATH_ERR_INVALID;
    }
    group->steps.push_back(step);
    group->numbered += step.kind != Step::Kind::barrier;
    return OFFPATH_OK;
}

}  // namespace

Status offpath::client::record_compute(offpath_group& group, offpath_group::Call call) {
    const Step step{.kind = Step::Kind::compute, .call = group.calls.size()};
    if (record(&group, step) != OFFPATH_OK) return Status::invalid;
    group.calls.push_back(std::move(call));
    return Status::ok;
}

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

offpath_status_t offpath_group_depend(offpath_group_h group, uint32_t step, uint32_t earlier) try {
    if (group == nullptr) return OFFPATH_ERR_INVALID;
    auto guard = group->team->context->lock();
    if (group->state != offpath_group::State::recording || step >= group->numbered || earlier >= step) {
        log::error(Code::arguments,
                   "offpath_group_depend: step {} cannot depend on step {} of {} that are recorded", step,
                   earlier, group->numbered);
        return OFFPATH_ERR_INVALID;
    }
    group->orders.emplace_back(earlier, step);
    return OFFPATH_OK;
} catch (...) {
    return caught("offpath_group_depend");
}

offpath_status_t offpath_group_end(offpath_group_h group) try {
    if (group == nullptr || group->state != offpath_group::State::recording) return OFFPATH_ERR_INVALID;
    offpath_context& context = *group->team->context;
    auto guard = context.lock();
    const schedule::Schedule schedule = GroupWriter(*group).write();
    group->state = offpath_group::State::unusable;
    std::string problem;
    if (Status status = schedule::validate(schedule, problem); status != Status::ok) {
        log::error(Code::arguments, "offpath_group_end: {}", problem);
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
    group->calls = {};
    group->orders = {};
    group->state = offpath_group::State::ready;
    return OFFPATH_OK;
} catch (...) {
    return caught("offpath_group_end");
}

offpath_status_t offpath_group_start(offpath_group_h group) try {
    if (group == nullptr || group->state != offpath_group::State::ready || group->team->destroyed)
        return OFFPATH_ERR_INVALID;
    if (offpath_group_test(group) == OFFPATH_IN_PROGRESS) {
        log::error(Code::arguments, "offpath_group_start: its previous start is not done");
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
        log::error(Code::arguments, "offpath_group_destroy: it is running");
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
