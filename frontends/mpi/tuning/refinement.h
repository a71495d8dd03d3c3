// What a communicator learns about one operation at one class of sizes while the program runs.
//
// A program computes between the post of an operation and its wait, or it does not; it changes its ways while
// it runs, and no rank can tell when it posts. So a slot knows which of the two the program did lately, its
// phase, keeps costs and the engine apart by phase, and takes the programs that compute as what it is for: a
// slot begins in that phase, enters the other one only after many calls that were only waited for, and leaves
// it at the first agreement after a call beside which some rank computed. While a phase of waiting uses
// another engine than computing would, that holds for a few calls only, unless an agreement confirms it.
//
// The other engine is tried seldom, and given up early where it costs much more. Which engine a call uses
// hangs on the number of calls so far and on what was agreed on, which are the same on all ranks; what a rank
// measured changes nothing before it is agreed on: contribute() and conclude() are called by all ranks after
// the same call.
//
// Pure apart from its memory: no clock, no MPI. Whoever shares a slot between threads locks add(),
// contribute() and conclude().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cost_model.h"

namespace offpath::mpi {

enum class Engine : std::uint8_t { host, device };
inline Engine other(Engine engine) {
    return engine == Engine::host ? Engine::device : Engine::host;
}
inline const char* name_of(Engine engine) {
    return engine == Engine::host ? "host" : "device";
}

// What the program does between post and wait.
enum class Phase : std::uint8_t { computes, waits };

// One call as one rank saw it.
struct Sample {
    std::uint64_t exposed_ns = 0;  // inside the MPI calls that post it, test it and wait for it
    std::uint64_t elapsed_ns = 0;  // from its post to the end of its wait
    std::uint64_t outside_ns = 0;  // of that, outside all calls that wait and test
};

// The latest few, and their medians.
class Samples {
  public:
    static constexpr std::size_t enough = 3;

    void add(const Sample& sample);
    void clear() { count_ = 0; }
    std::size_t count() const { return count_; }
    Sample median() const;

  private:
    static constexpr std::size_t capacity = 8;
    std::array<Sample, capacity> latest_{};
    std::size_t count_ = 0;
};

class Slot {
  public:
    // Trials: of the first calls not more than one in fifty, and of later ones ever fewer.
    static constexpr std::uint64_t usual_first_trial = 128;

    // What contribute() gives; summed over the ranks it goes to conclude(). Whole numbers: a sum of them is
    // the same on every rank.
    static constexpr std::size_t words = 8;
    using Words = std::array<std::uint64_t, words>;

    // `rows`: what the table knows of the operation here, perhaps nothing. `least_worth_trying`: bytes from
    // which on the device may be tried where the table knows nothing.
    Slot(Op op, std::uint64_t bytes, Engine usual, std::vector<TableRow> rows,
         std::uint64_t least_worth_trying, std::uint64_t first_trial_after = usual_first_trial);

    // The next call.
    struct Call {
        Engine engine = Engine::host;
        Phase phase = Phase::computes;
        bool counts = true;  // false: the first on an engine that was not used lately; its cost says nothing
        bool returned = false;  // nobody confirmed in time that the program still only waits
    };
    Call next();
    void add(const Call& call, const Sample& sample);

    // Whether an agreement is wanted soon, lest a change of phase costs more than a few calls. The same on
    // all ranks, like what follows.
    bool wants_agreement_soon() const { return is_at_risk() && since_agreement_ >= confirmed_every_; }
    // Whether it has anything to agree on.
    bool takes_part() const { return since_agreement_ > 0; }
    Words contribute() const;
    // `elapsed_ns`: since the last agreement. True when the engine, or why it is that, has changed.
    bool conclude(const Words& sums, std::uint64_t ranks, std::uint64_t elapsed_ns);

    Op op() const { return op_; }
    // Of the first call; what the class is called by.
    std::uint64_t bytes() const { return bytes_; }
    Phase phase() const { return phase_; }
    Engine usual() const { return state().usual; }
    // What was found last, in words; empty before there was anything.
    const std::string& finding() const { return finding_; }

  private:
    enum class Step : std::uint8_t { watching, probing, trying };
    struct Means {
        bool known = false;
        double exposed_s = 0, elapsed_s = 0;
    };
    struct State {
        Engine usual;
        Step step = Step::watching;
        std::uint64_t calls = 0;  // in this step
        std::uint64_t try_after;  // calls of watching
        std::array<Samples, 2> samples;
    };

    State& state() { return states_[static_cast<std::size_t>(phase_)]; }
    const State& state() const { return states_[static_cast<std::size_t>(phase_)]; }
    Samples& samples(Engine engine) { return state().samples[static_cast<std::size_t>(engine)]; }
    const Samples& samples(Engine engine) const { return state().samples[static_cast<std::size_t>(engine)]; }
    bool is_at_risk() const;
    void enter(Phase phase);
    bool conclude_phase(std::uint64_t computed, std::uint64_t waited, std::uint64_t ranks);
    bool conclude_trial(const Means& usual, const Means& tried);
    bool worth_trying(const Means& usual);
    bool compare(const Means& usual, const Means& tried);
    bool is_worth_leaving_for(const Means& usual, const Means& tried) const;
    void go_on(Step step);
    void forget_costs();
    void end_trial();

    Op op_;
    std::uint64_t bytes_;
    std::vector<TableRow> rows_;
    std::uint64_t least_worth_trying_;
    Phase phase_ = Phase::computes;
    std::array<State, 2> states_;
    std::uint64_t since_agreement_ = 0;  // calls
    std::uint64_t confirmed_every_ = 1;
    std::uint64_t unconfirmed_ = 0;  // calls of a phase of waiting since an agreement confirmed it
    std::uint64_t waited_for_ = 0;   // calls that were only waited for, as far as agreed
    std::uint64_t waits_needed_;     // of them, until the phase changes
    // Since the last agreement, as this rank saw it.
    std::uint64_t seen_ = 0, seen_computing_ = 0;
    std::string finding_;
};

}  // namespace offpath::mpi
