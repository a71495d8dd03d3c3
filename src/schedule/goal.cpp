#include "schedule/goal.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>

namespace offpath::schedule {
namespace {

using Link = std::pair<std::uint32_t, std::uint32_t>;  // from, to

class GoalWriter {
  public:
    GoalWriter(std::span<const Schedule> schedules, const GoalOptions& options)
        : schedules_(schedules), options_(options), lines_(schedules.size()) {}

    std::string run() {
        number_tags();
        for (const Schedule& schedule : schedules_) {
            for (OpId id = 0; id < schedule.ops().size(); ++id)
                write_op(schedule, id);
            for (OpId id = 0; id < schedule.ops().size(); ++id)
                for (OpId after : schedule.successors(id))
                    require(schedule.rank(), fmt::format("o{}", after), fmt::format("o{}", id));
        }
        write_waits();

        std::string text = fmt::format("num_ranks {}\n", schedules_.size());
        for (std::size_t rank = 0; rank < schedules_.size(); ++rank)
            text +=
                fmt::format("\nrank {} {{\n{}}}\n", rank, lines_[rank].empty() ? "calc 0\n" : lines_[rank]);
        return text;
    }

  private:
    void number_tags() {
        std::map<Link, std::set<std::uint64_t>> used;
        for (const Schedule& schedule : schedules_)
            for (const Op& op : schedule.ops())
                if (op.kind == OpKind::send) used[{schedule.rank(), op.peer}].insert(op.tag);
        for (const auto& [link, tags] : used)
            for (std::uint64_t tag : tags)
                numbers_[link].emplace(tag, next_tag_[link]++);
    }
    std::uint32_t number(Link link, std::uint64_t tag) const { return numbers_.at(link).at(tag); }

    void add(std::uint32_t rank, const std::string& label, const std::string& what) {
        lines_[rank] += fmt::format("{}: {}\n", label, what);
    }
    void require(std::uint32_t rank, const std::string& after, const std::string& before) {
        lines_[rank] += fmt::format("{} requires {}\n", after, before);
    }
    void send(Link link, const std::string& label, std::uint64_t bytes, std::uint32_t tag) {
        add(link.first, label, fmt::format("send {}b to {} tag {}", bytes, link.second, tag));
    }
    void recv(Link link, const std::string& label, std::uint64_t bytes, std::uint32_t tag) {
        add(link.second, label, fmt::format("recv {}b from {} tag {}", bytes, link.first, tag));
    }
    void calc(std::uint32_t rank, const std::string& label, double nanoseconds) {
        add(rank, label, fmt::format("calc {}", std::llround(nanoseconds)));
    }

    // Writes the lines of one op. The line "oID" ends the op and waits for its dependencies.
    void write_op(const Schedule& schedule, OpId id) {
        const std::uint32_t rank = schedule.rank();
        const Op& op = schedule.ops()[id];
        const std::string label = fmt::format("o{}", id);
        const double copy_ns = static_cast<double>(op.bytes) * options_.copy_ns_per_byte;
        const bool is_local = op.peer == rank;
        switch (op.kind) {
            case OpKind::send:
                if (!is_local)
                    send({rank, op.peer}, label, op.bytes, number({rank, op.peer}, op.tag));
                else
                    calc(rank, label, 0);
                return;
            case OpKind::recv:
                if (!is_local)
                    recv({op.peer, rank}, label, op.bytes, number({op.peer, rank}, op.tag));
                else {
                    calc(rank, label, copy_ns);
                    require(rank, label, fmt::format("o{}", send_to_self(rank, op.tag)));
                }
                return;
            case OpKind::signal:
                return write_signal(rank, label, op);
            case OpKind::wait:
                calc(rank, label, 0);
                return;
            case OpKind::compute:
                calc(rank, label,
                     static_cast<double>(schedule.calls()[op.tag].bytes()) * options_.compute_ns_per_byte);
                return;
            case OpKind::copy:
            case OpKind::reduce:
                break;
        }
        calc(rank, label, copy_ns);
    }

    void write_signal(std::uint32_t rank, const std::string& label, const Op& op) {
        auto& raised = signals_[{op.peer, op.tag}];
        if (op.peer == rank) {
            calc(rank, label, 0);
            raised.push_back(label);
            return;
        }
        const Link link{rank, op.peer};
        const std::uint32_t tag = next_tag_[link]++;
        const std::string served = fmt::format("s{}_{}", rank, label);
        send(link, label, 1, tag);
        recv(link, served, 1, tag);
        raised.push_back(served);
    }

    void write_waits() {
        for (const Schedule& schedule : schedules_)
            for (OpId id = 0; id < schedule.ops().size(); ++id) {
                const Op& op = schedule.ops()[id];
                if (op.kind != OpKind::wait) continue;
                const auto& raised = signals_.at({schedule.rank(), op.tag});
                for (std::uint64_t i = 0; i < op.bytes; ++i)
                    require(schedule.rank(), fmt::format("o{}", id), raised.at(i));
            }
    }

    OpId send_to_self(std::uint32_t rank, std::uint64_t tag) const {
        const auto ops = schedules_[rank].ops();
        OpId id = 0;
        while (ops[id].kind != OpKind::send || ops[id].peer != rank || ops[id].tag != tag)
            ++id;
        return id;
    }

    std::span<const Schedule> schedules_;
    const GoalOptions& options_;
    std::vector<std::string> lines_;  // by rank
    std::map<Link, std::map<std::uint64_t, std::uint32_t>> numbers_;
    std::map<Link, std::uint32_t> next_tag_;
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<std::string>> signals_;  // (rank, signal)
};

}  // namespace

std::string to_goal(std::span<const Schedule> schedules, const GoalOptions& options) {
    return GoalWriter(schedules, options).run();
}

}  // namespace offpath::schedule
