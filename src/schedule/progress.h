// Progress: executes the schedules of several ranks abstractly, for the validator. It models no data and no
// time, only which ops may start and which can end. A recv ends when its send has started, a send when its
// recv has started, a wait when enough of its signals have arrived. A step only ever enables other steps, so
// the outcome does not depend on their order. An op that has not ended when no step is possible never ends.
// Threads: one.
#pragma once

#include "schedule/schedule.h"

#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace offpath::schedule {

class Progress {
  public:
    // `schedules[i]` is that of rank `first_rank + i`. Other ranks are assumed to do their part at once.
    // Sends to them and recvs from them end when they start. So do all waits, unless the whole team is
    // present.
    explicit Progress(std::span<const Schedule> schedules, std::uint32_t first_rank = 0);

    // True when every op ends.
    bool run();
    // After run() returned false: the ops of one cycle of waiting, such as "op 0 (...) waits for op 1 (...)".
    std::string circle() const;

  private:
    struct Node {
        std::uint32_t rank = 0;  // index into schedules_
        OpId op = 0;
        auto operator<=>(const Node&) const = default;
    };
    enum class State : std::uint8_t { blocked, started, done };
    using Channel = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;  // from, to, tag
    using SignalKey = std::pair<std::uint32_t, std::uint64_t>;                // rank, signal

    const Op& op(Node node) const { return schedules_[node.rank].ops()[node.op]; }
    State state(Node node) const { return states_[node.rank][node.op]; }
    bool inside(std::uint32_t peer) const { return peer - first_rank_ < schedules_.size(); }
    const Node* counterpart(Node node) const;
    void start(Node node);
    void finish(Node node);
    void raise(SignalKey key);
    Node blamed(Node node) const;

    std::span<const Schedule> schedules_;
    std::uint32_t first_rank_;
    std::vector<std::vector<State>> states_;
    std::vector<std::vector<std::uint32_t>> missing_;
    std::map<Channel, Node> sends_, recvs_;
    struct Signal {
        std::uint64_t raised = 0;
        std::vector<Node> waiting, raisers;
    };
    std::map<SignalKey, Signal> signals_;
    std::vector<Node> ready_;
    std::size_t done_ = 0, total_ = 0;
};

}  // namespace offpath::schedule
