// Turns: which of the processes of a core runs on it, where each that can run has the core for a turn. A
// process that waits actively has its turns, too, and nobody else runs in them.
//
// The next turn is that of the process that has had the least time. Since all have had nearly the same, small
// differences decide, so the order of each round is drawn. Turns end at multiples of their length, and last
// for two fifths of it at least: a clock looks so often whether the running process has had its slice.
//
// Turns of processes that only wait are not simulated one by one: the order is brought up to date when it
// matters. Ownership: borrows the queue and the core. Threads: one.
#pragma once

#include "sim/servers/core.h"

#include <map>
#include <random>
#include <vector>

namespace offpath::sim {

class Turns {
  public:
    using Process = Core::Process;

    // `length` is greater than 0.
    Turns(EventQueue& queue, Core& core, Time length, std::uint64_t seed)
        : queue_(queue), core_(core), length_(length), random_(seed) {}
    Turns(const Turns&) = delete;
    Turns& operator=(const Turns&) = delete;

    // The process can run, and has its turns from now on.
    void join(Process process);
    // It has slept. It runs at once, ahead of the process whose turn it was.
    void wake(Process process);
    // It sleeps. Who waits for its turn is called: nobody keeps it from the core any more.
    void leave(Process process);
    bool takes_part(Process process) const { return find(process) != nullptr; }
    bool runs(Process process);
    // Calls `action` when the process runs next: now, if it does. It takes part.
    void when_it_runs(Process process, EventQueue::Action action, void* object, std::uint64_t argument = 0);
    // The running process has begun a computation.
    void changed();

  private:
    struct Member {
        Process process;
        double had;  // time on the core, in turns
    };
    struct Waiting {
        EventQueue::Action action;
        void* object;
        std::uint64_t argument;
    };
    const Member* find(Process process) const;
    // Somewhat more or less than no time at all.
    double difference() { return std::uniform_real_distribution<double>(-0.1, 0.1)(random_); }
    double least_had() const;
    // Ends the turn at `time` and chooses whose turn is next.
    void change(Time time);
    void begin_turn(std::size_t whose, Time time);
    // Whose turn is next.
    std::size_t next() const;
    // Lets the turns pass that nobody has planned.
    void catch_up();
    // Calls those who have waited for this process to run.
    void call(Process process);
    // Sets the event at which the turn ends, if it matters when that is.
    void plan();
    static void end_turn(void* turns, std::uint64_t generation);

    EventQueue& queue_;
    Core& core_;
    const Time length_;
    std::mt19937_64 random_;
    std::vector<Member> members_;
    std::size_t running_ = 0;  // index; any if there is no member
    Time began_ = 0, ends_at_ = 0;
    std::map<Process, std::vector<Waiting>> waiting_;
    bool planned_ = false;
    Time planned_at_ = 0;
    std::uint64_t generation_ = 0;  // events of earlier plans do nothing
};

}  // namespace offpath::sim
