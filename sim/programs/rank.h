// Rank: a simulated host rank: what a Program may do, and what the host's side of it costs. Job: all ranks,
// and the loop of the simulation.
//
// Ownership: a Job owns its ranks and their requests; it borrows the cluster. Threads: one.
#pragma once

#include "sim/machine/cluster.h"
#include "sim/programs/program.h"

#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace offpath::sim {

class Job;
class Rank;

// An operation in the words of the engine. `start` is called by the rank's worker, or its library, in a round
// of its loop.
struct Operation {
    std::function<Status(engine::Engine&, Completion*)> start;
    std::string name;       // for people: "alltoall", "receive from rank 3"
    bool on_host = false;   // the rank's library executes it, though there is a device
    bool accesses = false;  // a window: several such commands of one round cost as much as one
    // Not null: `requests` go there by the short way, and `start` is not called.
    Worker* asked = nullptr;
    std::vector<engine::DirectAccess> requests = {};
};

class Request final : public Completion {
  public:
    explicit Request(Rank& rank);
    bool over() const { return over_; }
    const std::string& name() const { return name_; }

  private:
    friend class Rank;
    void end(Status status);
    static void reach_host(void* request, std::uint64_t);
    static void wake_host(void* request, std::uint64_t);
    Rank& rank_;
    std::string name_;
    bool over_ = false, awaited_ = false, on_host_ = false;
    double answer_s_ = 0;  // what it takes the rank to read an answer of the short way; 0: it is not one
    Status status_ = Status::in_progress;
};

class Rank {
  public:
    Rank(Job& job, std::uint32_t number);
    Rank(const Rank&) = delete;

    std::uint32_t number() const { return number_; }
    Job& job() { return job_; }
    Time now() const;
    // Of the rank alone, seeded.
    std::mt19937_64& random() { return random_; }

    // What co_await takes. Each suspends the program until its time has passed.
    struct Awaited {
        Rank& rank;
        Request* request = nullptr;
        bool ready = false;
        bool await_ready() const { return ready; }
        void await_suspend(std::coroutine_handle<>) {}
        void await_resume() const {}
    };
    // Gives the request.
    struct Posted : Awaited {
        Request& await_resume() const { return *request; }
    };
    Posted post(const Operation& operation);
    // Throws std::runtime_error at the program's point if the operation has failed.
    Awaited wait(Request& request);
    Awaited compute(Time work);
    Awaited pause(Time time);
    // Goes on when all ranks are there. Takes no time and no messages: it is the simulation's own.
    Awaited meet();

    // What it waits for; empty: nothing.
    const std::string& waits_for() const { return waits_for_; }
    bool over() const { return program_ == nullptr || program_->over(); }
    // Hands the request back for the next post.
    void give_back(Request& request) { unused_.push_back(&request); }

  private:
    friend class Job;
    friend class Request;
    static void go_on(void* rank, std::uint64_t);
    static void sleep(void* rank, std::uint64_t wait);
    Posted ask(Request& request, const Operation& operation);
    // The rank works on its core for a moment. Returns when that ends.
    Time step(double seconds);
    void resume_at(Time time);

    Job& job_;
    const std::uint32_t number_;
    std::mt19937_64 random_;
    std::unique_ptr<Program> program_;
    std::deque<Request> requests_;
    std::vector<Request*> unused_;
    Turns* const turns_;  // null: the ranks of its core take none
    const Core::Process process_;
    Core::JobId polling_ = 0;
    std::uint64_t waits_ = 0;  // so many until now
    Time waits_since_ = 0;
    std::string waits_for_;
};

// Every program waits, and nothing will happen any more. The text lists who waits for what.
struct Deadlock : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Job {
  public:
    explicit Job(Cluster& cluster);
    Cluster& cluster() { return cluster_; }
    Rank& rank(std::uint32_t number) { return ranks_[number]; }
    std::uint32_t size() const { return static_cast<std::uint32_t>(ranks_.size()); }

    // Starts a program at each rank and simulates until all have ended. Throws Deadlock, or what a program
    // has thrown.
    void run(const std::function<Program(Rank&)>& program);

    // Called each time when all ranks have met, before they go on.
    std::function<void()> when_met;

  private:
    friend class Rank;
    [[noreturn]] void report_deadlock() const;
    Cluster& cluster_;
    std::deque<Rank> ranks_;
    std::uint32_t met_ = 0;
    std::exception_ptr error_;
};

}  // namespace offpath::sim
