#include "schedule/validate.h"

#include "schedule/check_op.h"
#include "schedule/progress.h"
#include "schedule/wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace offpath::schedule {
namespace {

std::string check_frame(const Schedule& schedule) {
    if (schedule.team_size() == 0) return "the team is empty";
    if (schedule.rank() >= schedule.team_size())
        return fmt::format("rank {} is not in the team of {}", schedule.rank(), schedule.team_size());
    if (schedule.slots().size() > max_slots)
        return fmt::format("{} slots, the limit is {}", schedule.slots().size(), max_slots);
    if (schedule.ops().size() > max_ops)
        return fmt::format("{} ops, the limit is {}", schedule.ops().size(), max_ops);
    for (std::size_t i = 0; i < schedule.slots().size(); ++i) {
        const Slot& slot = schedule.slots()[i];
        if (slot.kind != SlotKind::user && slot.kind != SlotKind::scratch)
            return fmt::format("slot {} has the unknown kind {}", i, static_cast<int>(slot.kind));
        if (slot.bytes > max_slot_bytes)
            return fmt::format("slot {} has {} bytes, the limit is {}", i, slot.bytes, max_slot_bytes);
    }
    return {};
}

// The wire form has each call with its op, so the calls and the compute ops agree in number and order.
std::string check_calls(const Schedule& schedule) {
    std::uint64_t next = 0;
    for (OpId id = 0; id < schedule.ops().size(); ++id) {
        const Op& op = schedule.ops()[id];
        if (op.kind == OpKind::compute && op.tag != next++)
            return fmt::format("{}: call {} was due", describe(id, op), next - 1);
    }
    if (next == schedule.calls().size()) return {};
    return fmt::format("{} calls of kernels for {} compute ops", schedule.calls().size(), next);
}

// A send or recv, with the fields by which it matches.
struct Endpoint {
    std::uint32_t from = 0, to = 0;
    std::uint64_t tag = 0;
    OpId op = 0;
    auto channel() const { return std::tie(from, to, tag); }
};

// Collects the sends or recvs of a schedule and sorts them by channel. Fails if two have the same channel.
std::string collect(const Schedule& schedule, OpKind kind, std::vector<Endpoint>& endpoints) {
    const std::size_t first = endpoints.size();
    for (OpId id = 0; id < schedule.ops().size(); ++id) {
        const Op& op = schedule.ops()[id];
        if (op.kind == kind && kind == OpKind::send)
            endpoints.push_back({schedule.rank(), op.peer, op.tag, id});
        else if (op.kind == kind)
            endpoints.push_back({op.peer, schedule.rank(), op.tag, id});
    }
    const auto begin = endpoints.begin() + static_cast<std::ptrdiff_t>(first);
    std::stable_sort(begin, endpoints.end(), [](auto& a, auto& b) { return a.channel() < b.channel(); });
    const auto twin = std::adjacent_find(begin, endpoints.end(),
                                         [](auto& a, auto& b) { return a.channel() == b.channel(); });
    if (twin == endpoints.end()) return {};
    return fmt::format("{}: op {} has the same peer and tag",
                       describe(twin[1].op, schedule.ops()[twin[1].op]), twin[0].op);
}

// Matches sends with recvs in the schedules of ranks first, first + 1, .... Messages to and from other ranks
// are ignored.
class Matching {
  public:
    Matching(std::span<const Schedule> schedules, std::uint32_t first)
        : schedules_(schedules), first_(first) {}

    std::string run() {
        std::vector<Endpoint> sends, recvs;
        for (const Schedule& schedule : schedules_)
            for (auto [kind, endpoints] : {std::pair{OpKind::send, &sends}, std::pair{OpKind::recv, &recvs}})
                if (std::string wrong = collect(schedule, kind, *endpoints); !wrong.empty())
                    return label(schedule.rank()) + wrong;
        for (std::vector<Endpoint>* endpoints : {&sends, &recvs}) {
            std::erase_if(*endpoints, [&](const Endpoint& e) { return !inside(e.from) || !inside(e.to); });
            std::sort(endpoints->begin(), endpoints->end(),
                      [](auto& a, auto& b) { return a.channel() < b.channel(); });
        }
        return compare(sends, recvs);
    }

  private:
    bool inside(std::uint32_t rank) const { return rank - first_ < schedules_.size(); }
    std::string label(std::uint32_t rank) const {
        return schedules_.size() > 1 ? fmt::format("rank {}: ", rank) : std::string();
    }
    const Op& op(std::uint32_t rank, const Endpoint& endpoint) const {
        return schedules_[rank - first_].ops()[endpoint.op];
    }

    std::string compare(const std::vector<Endpoint>& sends, const std::vector<Endpoint>& recvs) const {
        std::size_t i = 0, j = 0;
        while (i < sends.size() || j < recvs.size()) {
            if (j == recvs.size() || (i < sends.size() && sends[i].channel() < recvs[j].channel()))
                return fmt::format("{}{}: rank {} has no recv for it", label(sends[i].from),
                                   describe(sends[i].op, op(sends[i].from, sends[i])), sends[i].to);
            if (i == sends.size() || recvs[j].channel() < sends[i].channel())
                return fmt::format("{}{}: rank {} has no send for it", label(recvs[j].to),
                                   describe(recvs[j].op, op(recvs[j].to, recvs[j])), recvs[j].from);
            const Op& send = op(sends[i].from, sends[i]);
            const Op& recv = op(recvs[j].to, recvs[j]);
            if (send.bytes != recv.bytes)
                return fmt::format("{}{}: sends {} bytes, rank {} receives {}", label(sends[i].from),
                                   describe(sends[i].op, send), send.bytes, sends[i].to, recv.bytes);
            ++i;
            ++j;
        }
        return {};
    }

    std::span<const Schedule> schedules_;
    std::uint32_t first_;
};

std::string check_waits(std::span<const Schedule> schedules) {
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> raised;
    for (const Schedule& schedule : schedules)
        for (const Op& op : schedule.ops())
            if (op.kind == OpKind::signal) ++raised[{op.peer, op.tag}];
    for (const Schedule& schedule : schedules)
        for (OpId id = 0; id < schedule.ops().size(); ++id) {
            const Op& op = schedule.ops()[id];
            if (op.kind != OpKind::wait) continue;
            const auto found = raised.find({schedule.rank(), op.tag});
            const std::uint64_t there = found == raised.end() ? 0 : found->second;
            if (there < op.bytes)
                return fmt::format("rank {}: {}: needs {} signals, {} are sent", schedule.rank(),
                                   describe(id, op), op.bytes, there);
        }
    return {};
}

Status fail(std::string& problem, std::string text) {
    problem = std::move(text);
    return Status::invalid;
}

}  // namespace

Status validate(const Schedule& schedule, std::string& problem) {
    if (std::string wrong = check_frame(schedule); !wrong.empty()) return fail(problem, std::move(wrong));
    for (OpId id = 0; id < schedule.ops().size(); ++id)
        if (std::string wrong = check_op(schedule, schedule.ops()[id]); !wrong.empty())
            return fail(problem, describe(id, schedule.ops()[id]) + ": " + wrong);
    if (std::string wrong = check_calls(schedule); !wrong.empty()) return fail(problem, std::move(wrong));
    if (std::string wrong = Matching({&schedule, 1}, schedule.rank()).run(); !wrong.empty())
        return fail(problem, std::move(wrong));
    if (schedule.team_size() == 1)
        if (std::string wrong = check_waits({&schedule, 1}); !wrong.empty())
            return fail(problem, std::move(wrong));

    Progress progress({&schedule, 1}, schedule.rank());
    if (!progress.run()) return fail(problem, "a circle of dependencies: " + progress.circle());
    return Status::ok;
}

Status validate_team(std::span<const Schedule> schedules, std::string& problem) {
    for (std::size_t rank = 0; rank < schedules.size(); ++rank) {
        const Schedule& schedule = schedules[rank];
        if (schedule.rank() != rank || schedule.team_size() != schedules.size())
            return fail(problem, fmt::format("the schedule at place {} of {} is of rank {} in a team of {}",
                                             rank, schedules.size(), schedule.rank(), schedule.team_size()));
        if (Status status = validate(schedule, problem); status != Status::ok)
            return fail(problem, fmt::format("rank {}: {}", rank, problem));
    }
    for (std::string wrong : {Matching(schedules, 0).run(), check_waits(schedules)})
        if (!wrong.empty()) return fail(problem, std::move(wrong));

    Progress progress(schedules);
    if (!progress.run()) return fail(problem, "deadlock: " + progress.circle());
    return Status::ok;
}

}  // namespace offpath::schedule
