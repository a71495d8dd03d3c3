#include "schedule/progress.h"

#include <fmt/format.h>

#include <algorithm>

namespace offpath::schedule {

Progress::Progress(std::span<const Schedule> schedules, std::uint32_t first_rank)
    : schedules_(schedules), first_rank_(first_rank) {
    for (std::uint32_t rank = 0; rank < schedules.size(); ++rank) {
        const Schedule& schedule = schedules[rank];
        states_.emplace_back(schedule.ops().size(), State::blocked);
        missing_.emplace_back(schedule.dependency_counts().begin(), schedule.dependency_counts().end());
        total_ += schedule.ops().size();
        const std::uint32_t self = first_rank + rank;
        for (OpId id = 0; id < schedule.ops().size(); ++id) {
            const Op& entry = schedule.ops()[id];
            if (schedule.dependency_count(id) == 0) ready_.push_back({rank, id});
            if (!inside(entry.peer)) continue;
            if (entry.kind == OpKind::send)
                sends_.emplace(Channel{self, entry.peer, entry.tag}, Node{rank, id});
            else if (entry.kind == OpKind::recv)
                recvs_.emplace(Channel{entry.peer, self, entry.tag}, Node{rank, id});
            else if (entry.kind == OpKind::signal)
                signals_[{entry.peer, entry.tag}].raisers.push_back({rank, id});
        }
    }
}

bool Progress::run() {
    while (!ready_.empty()) {
        const Node node = ready_.back();
        ready_.pop_back();
        start(node);
    }
    return done_ == total_;
}

const Progress::Node* Progress::counterpart(Node node) const {
    const Op& entry = op(node);
    const std::uint32_t self = first_rank_ + node.rank;
    const bool is_send = entry.kind == OpKind::send;
    const auto& others = is_send ? recvs_ : sends_;
    const auto found =
        others.find(is_send ? Channel{self, entry.peer, entry.tag} : Channel{entry.peer, self, entry.tag});
    return found == others.end() ? nullptr : &found->second;
}

void Progress::start(Node node) {
    states_[node.rank][node.op] = State::started;
    const Op& entry = op(node);
    switch (entry.kind) {
        case OpKind::send:
        case OpKind::recv: {
            if (!inside(entry.peer)) return finish(node);
            const Node* other = counterpart(node);
            if (other && state(*other) == State::started) {
                finish(*other);
                finish(node);
            }
            return;
        }
        case OpKind::wait: {
            if (schedules_.size() < schedules_[node.rank].team_size()) return finish(node);
            Signal& signal = signals_[{first_rank_ + node.rank, entry.tag}];
            if (signal.raised >= entry.bytes) return finish(node);
            signal.waiting.push_back(node);
            return;
        }
        case OpKind::signal:
            if (inside(entry.peer)) raise({entry.peer, entry.tag});
            return finish(node);
        default:
            return finish(node);
    }
}

void Progress::raise(SignalKey key) {
    Signal& signal = signals_[key];
    ++signal.raised;
    const auto reached = [&](Node node) { return op(node).bytes <= signal.raised; };
    const auto split = std::stable_partition(signal.waiting.begin(), signal.waiting.end(),
                                             [&](Node node) { return !reached(node); });
    const std::vector<Node> woken(split, signal.waiting.end());
    signal.waiting.erase(split, signal.waiting.end());
    for (Node node : woken)
        finish(node);
}

void Progress::finish(Node node) {
    states_[node.rank][node.op] = State::done;
    ++done_;
    for (OpId next : schedules_[node.rank].successors(node.op))
        if (--missing_[node.rank][next] == 0) ready_.push_back({node.rank, next});
}

// Returns a node that has to end before `node`, which has not ended, can end.
Progress::Node Progress::blamed(Node node) const {
    const Schedule& schedule = schedules_[node.rank];
    if (state(node) == State::blocked) {
        for (OpId before = 0; before < schedule.ops().size(); ++before) {
            const auto next = schedule.successors(before);
            if (states_[node.rank][before] != State::done &&
                std::binary_search(next.begin(), next.end(), node.op))
                return {node.rank, before};
        }
    }
    if (op(node).kind == OpKind::wait) {
        const auto found = signals_.find({first_rank_ + node.rank, op(node).tag});
        if (found != signals_.end())
            for (Node raiser : found->second.raisers)
                if (state(raiser) != State::done) return raiser;
    } else if (const Node* other = counterpart(node)) {
        return *other;
    }
    return node;
}

std::string Progress::circle() const {
    Node node;
    for (std::uint32_t rank = 0; rank < schedules_.size(); ++rank) {
        const auto stuck = std::find_if(states_[rank].begin(), states_[rank].end(),
                                        [](State state) { return state != State::done; });
        if (stuck != states_[rank].end()) {
            node = {rank, static_cast<OpId>(stuck - states_[rank].begin())};
            break;
        }
    }
    std::vector<Node> path;
    while (std::find(path.begin(), path.end(), node) == path.end()) {
        path.push_back(node);
        node = blamed(node);
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), node));

    constexpr std::size_t shown = 8;
    std::string text;
    for (std::size_t i = 0; i < path.size() && i < shown; ++i) {
        if (i > 0) text += " waits for ";
        if (schedules_.size() > 1) text += fmt::format("rank {} ", first_rank_ + path[i].rank);
        text += describe(path[i].op, op(path[i]));
    }
    if (path.size() > shown)
        return text + fmt::format(" and so on through {} ops, back to the first", path.size());
    return path.size() == 1 ? text + " waits for itself" : text + " waits for the first";
}

}  // namespace offpath::schedule
