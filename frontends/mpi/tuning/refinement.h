// What a communicator learns about one operation at one class of sizes while the program runs.
//
// A program computes between the post of an operation and its wait, or it does not. It changes this behaviour
// while it runs, and no rank can predict it at the post. A slot therefore knows which of the two the program
// did lately, its phase, and keeps costs and the engine separately for each phase. Offloading exists for
// programs that compute. So a slot begins in that phase and enters the other one only after many calls that
// were only waited for. It leaves it at the first agreement after a call during which some rank computed. If
// a phase of waiting uses another engine than computing would, that holds for only a few calls, unless an
// agreement confirms it.
//
// The other engine is tried seldom, and the trial ends early if it costs much more. The engine of a call
// depends on the number of calls so far and on agreements, which are the same on all ranks. A rank's
// measurements change nothing until they are agreed on: all ranks call contribute() and conclude() after the
// same call.
//
// Pure apart from its memory: no clock, no MPI. Threads that share a slot must lock add(), contribute() and
// conclude().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
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

// What one run of a program hands to the next (signature.h). Trivially copyable.
struct Remembered {
    struct Seen {
        double exposed_s = 0, elapsed_s = 0;  // 0: not measured
    };
    Phase phase = Phase::computes;
    std::array<Engine, 2> engines{};  // by phase
    std::array<Seen, 2> seen{};       // by engine, in `phase`
};

// One call as one rank saw it.
struct Sample {
    std::uint64_t exposed_ns = 0;  // inside the MPI calls that post it, test it and wait for it
    std::uint64_t elapsed_ns = 0;  // from its post to the end of its wait
    std::uint64_t outside_ns = 0;  // of that, outside all calls that wait and test
};

// The latest few samples, and their medians.
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
    // Trials: a few of the first calls, so that programs of a hundred calls gain from them, and of later ones
    // ever fewer.
    static constexpr std::uint64_t usual_first_trial = 32;

    // The result of contribute(); the sum over the ranks goes to conclude(). Whole numbers, so the sum is the
    // same on every rank.
    static constexpr std::size_t words = 8;
    using Words = std::array<std::uint64_t, words>;

    // `rows`: what the table knows about the operation here, possibly nothing. `least_worth_trying`: bytes
    // from which on the device may be tried if the table knows nothing. `remembered`: of an earlier run; the
    // slot starts from it and tries the other engine later, or soon if the program waits for longer than it
    // did.
    Slot(Op op, std::uint64_t bytes, Engine usual, std::vector<TableRow> rows,
         std::uint64_t least_worth_trying, std::uint64_t first_trial_after = usual_first_trial,
         const Remembered* remembered = nullptr);

    // The next call.
    struct Call {
        Engine engine = Engine::host;
        Phase phase = Phase::computes;
        // False: the first on an engine that was not used lately, so its cost is not representative.
        bool counts = true;
        bool returned = false;  // no agreement confirmed in time that the program still only waits
    };
    Call next();
    void add(const Call& call, const Sample& sample);

    // Whether an agreement is needed soon, so that a change of phase costs only a few calls. The same on all
    // ranks, and so are the following functions.
    bool wants_agreement_soon() const { return is_at_risk() && since_agreement_ >= confirmed_every_; }
    // Whether its step will have ended `delay` calls from now, with `in_flight` calls between the last one of
    // a trial and now, so that it needs an agreement to go on.
    bool awaits_agreement(std::uint64_t in_flight, std::uint64_t delay) const;
    // Whether it has anything to agree on.
    bool takes_part() const { return since_agreement_ > 0; }
    // The sum is taken up in the same call or in a later one (agreement.h).
    Words contribute();
    // There is an agreement, whose sums this rank does not know.
    void pass_over() { since_agreement_ = 0; }
    // `elapsed_ns`: since the last agreement. True if the engine, or the reason for it, has changed.
    bool conclude(const Words& sums, std::uint64_t ranks, std::uint64_t elapsed_ns);

    Op op() const { return op_; }
    // Of the first call; it names the class.
    std::uint64_t bytes() const { return bytes_; }
    Phase phase() const { return phase_; }
    Engine usual() const { return state().usual; }
    // What a later run may start from; nothing before anything was learned.
    std::optional<Remembered> learned() const;
    std::uint64_t calls() const { return calls_; }
    bool is_remembered() const { return remembered_; }
    // The latest result in words; empty before there is one.
    const std::string& finding() const { return finding_; }

  private:
    enum class Step : std::uint8_t { watching, probing, trying };
    struct Means {
        bool known = false;
        double exposed_s = 0, elapsed_s = 0;
        double gap_s() const { return elapsed_s - exposed_s; }
    };
    struct State {
        Engine usual;
        Step step = Step::watching;
        std::uint64_t calls = 0;  // in this step
        std::uint64_t try_after;  // calls to watch before a trial
        std::array<Samples, 2> samples;
        std::array<Means, 2> agreed;  // the latest, by engine
        // How long the program computed when the device was left.
        std::optional<double> gap_without_device_s;
    };

    State& state() { return states_[static_cast<std::size_t>(phase_)]; }
    const State& state() const { return states_[static_cast<std::size_t>(phase_)]; }
    Samples& samples(Engine engine) { return state().samples[static_cast<std::size_t>(engine)]; }
    const Samples& samples(Engine engine) const { return state().samples[static_cast<std::size_t>(engine)]; }
    bool is_at_risk() const;
    void enter(Phase phase);
    bool conclude_phase(std::uint64_t computed, std::uint64_t waited, std::uint64_t ranks);
    bool conclude_trial(const Means& usual, const Means& tried);
    static bool hides_all(const Means& usual);
    bool worth_trying(const Means& usual);
    void compare_with_memory(const Means& usual);
    void notice_longer_computing(const Means& usual);
    bool compare(const Means& usual, const Means& tried);
    bool is_worth_leaving_for(const Means& usual, const Means& tried) const;
    void go_on(Step step);
    void forget_costs();
    void end_trial();

    Op op_;
    std::uint64_t bytes_;
    std::vector<TableRow> rows_;
    std::uint64_t least_worth_trying_;
    std::uint64_t first_trial_after_;
    Phase phase_ = Phase::computes;
    std::array<State, 2> states_;
    std::uint64_t since_agreement_ = 0;    // calls
    std::uint64_t calls_contributed_ = 0;  // of the step, at the last contribution
    std::uint64_t confirmed_every_ = 1;
    std::uint64_t unconfirmed_ = 0;  // calls of a phase of waiting since an agreement confirmed it
    std::uint64_t waited_for_ = 0;   // calls that were only waited for, as far as agreed
    std::uint64_t waits_needed_;     // how many of them change the phase
    // Since the last agreement, as seen by this rank.
    std::uint64_t seen_ = 0, seen_computing_ = 0;
    std::string finding_;
    std::uint64_t calls_ = 0;
    bool remembered_ = false;
    bool has_learned_ = false;
    std::optional<double> expected_exposed_s_;  // in the remembered phase, until it was compared
};

}  // namespace offpath::mpi
