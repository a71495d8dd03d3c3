// Core: a processor core that runs the loops of proxies, and the computations of ranks.
//
// Two kinds of work share it. *Steps* are short: a round of a proxy's loop, or a call of a library. Steps run
// one after the other, ahead of everything else, because a scheduler lets a thread that wakes up run soon.
// *Jobs* are computations, and ranks that poll. All jobs advance at the same rate, 1/n of the time that steps
// leave. Where processes take turns (turns.h), only the jobs of the running process advance.
//
// Ownership: borrows the queue. Threads: one. Units: Time.
#pragma once

#include "sim/clock/event_queue.h"

#include <algorithm>
#include <map>
#include <utility>

namespace offpath::sim {

class Core {
  public:
    using JobId = std::uint64_t;
    using Process = const void*;

    explicit Core(EventQueue& queue) : queue_(queue) {}
    Core(const Core&) = delete;
    Core& operator=(const Core&) = delete;

    // From when on the core is free for a step.
    Time free_at() const { return booked_until_; }
    // Runs a step of length `work` as soon as the core is free. Returns when it ends.
    Time step(Time work);
    // `process` takes the core. Whether another one had it before.
    bool taken_by(Process process) { return std::exchange(process_, process) != process; }
    // A process that takes turns with others looks for messages on this core, or no longer does.
    void begin_turns() { ++turns_; }
    void end_turns() { --turns_; }
    // The same for a process that goes on looking until `time` unless it is called again.
    void take_turns_until(Process process, Time time) { looks_until_[process] = time; }
    // How many processes the core passes through, on average, until it comes to one that has something to do.
    double turns_to_come() const {
        const auto looking = std::count_if(looks_until_.begin(), looks_until_.end(),
                                           [this](const auto& one) { return one.second > queue_.now(); });
        return std::max(1.0, 0.5 * (turns_ + static_cast<double>(looking)));
    }

    // From now on only jobs of this process advance.
    void run(Process process);
    // Whether any process computes.
    bool computes() const;

    // Computes for `work` of the core's time and then calls `action`. `process` matters only where turns are
    // taken.
    JobId compute(Time work, EventQueue::Action action, void* object, std::uint64_t argument,
                  Process process = nullptr);
    // A rank polls: it takes its share until stop().
    JobId poll();
    void stop(JobId job);

    // Time that steps and computations have had. Polling does not count.
    Time busy() const { return booked_total_ + computed_; }

  private:
    struct Job {
        Time left = never;  // never: it polls
        EventQueue::Action action = nullptr;
        void* object = nullptr;
        std::uint64_t argument = 0;
        Process process = nullptr;
    };
    bool advances(const Job& job) const { return !takes_turns_ || job.process == running_; }
    // How many jobs share the core now.
    std::size_t sharers() const;
    // Of the time until now, how much was booked by steps.
    Time booked_before_now() const;
    // Brings all jobs up to now.
    void settle();
    // Sets the event for the job that ends next.
    void plan();
    static void look(void* core, std::uint64_t generation);

    EventQueue& queue_;
    Process process_ = nullptr;  // the last one that took the core
    bool takes_turns_ = false;
    Process running_ = nullptr;  // the one whose turn it is
    unsigned turns_ = 0;
    std::map<Process, Time> looks_until_;
    Time booked_until_ = 0, booked_total_ = 0;
    Time settled_at_ = 0, booked_at_settle_ = 0;
    Time computed_ = 0;
    std::map<JobId, Job> jobs_;
    JobId last_ = 0;
    std::uint64_t generation_ = 0;  // events of earlier plans do nothing
};

}  // namespace offpath::sim
