// Agent: the thread of a client that serves the stream between its host and its device. It works on its
// rank's core, ahead of computations, and sleeps while nothing comes.
//
// Ownership: borrows the cluster and the core. Threads: one.
#pragma once

#include "sim/servers/core.h"

#include <deque>
#include <functional>
#include <map>

namespace offpath::sim {

class Cluster;

class Agent {
  public:
    Agent(Cluster& cluster, Core& core) : cluster_(cluster), core_(core) {}
    Agent(const Agent&) = delete;
    Agent& operator=(const Agent&) = delete;

    // Something comes at `time` that takes `seconds` of the core. Calls `then` when it is done.
    void serve(Time time, double seconds, std::function<void()> then);

  private:
    struct Task {
        double seconds;
        std::function<void()> then;
    };
    static void come(void* agent, std::uint64_t);
    static void work(void* agent, std::uint64_t);
    static void finish(void* agent, std::uint64_t);

    Cluster& cluster_;
    Core& core_;
    std::multimap<Time, Task> coming_;  // of one time: in the order of the calls
    std::deque<Task> here_;
    bool awake_ = false;
};

}  // namespace offpath::sim
