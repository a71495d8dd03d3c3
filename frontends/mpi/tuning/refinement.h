// What a communicator learns about one operation at one class of sizes while the program runs.
//
// A slot watches what calls cost on the engine that it uses, lets a few calls try the other engine, compares,
// and settles; much later it looks again. Which engine a call uses hangs on the number of calls so far and on
// what was agreed on, which are the same on all ranks; what a rank measured changes nothing before it is
// agreed on: contribute() and conclude() are called by all ranks after the same call.
//
// Pure apart from its memory: no clock, no MPI. Whoever shares a slot between threads locks it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
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

// One call as one rank saw it.
struct Sample {
    std::uint64_t exposed_ns = 0;  // inside the MPI calls that post it, test it and wait for it
    std::uint64_t elapsed_ns = 0;  // from its post to the end of its wait
};

// The latest few, and their medians.
class Samples {
  public:
    static constexpr std::size_t enough = 3;

    void add(const Sample& sample);
    void clear() { count_ = 0; }
    bool are_enough() const { return count_ >= enough; }
    Sample median() const;

  private:
    static constexpr std::size_t capacity = 8;
    std::array<Sample, capacity> latest_{};
    std::size_t count_ = 0;
};

class Slot {
  public:
    // What contribute() gives; summed over the ranks it goes to conclude(). Whole numbers: a sum of them is
    // the same on every rank.
    static constexpr std::size_t words = 6;
    using Words = std::array<std::uint64_t, words>;

    // `rows`: what the table knows of the operation here, perhaps nothing. `least_worth_trying`: bytes from
    // which on the device may be tried where the table knows nothing.
    Slot(Op op, std::uint64_t bytes, Engine usual, std::vector<TableRow> rows,
         std::uint64_t least_worth_trying);

    // The next call. `sampled`: its cost is wanted.
    struct Call {
        Engine engine;
        bool sampled;
    };
    Call next();
    void add(Engine engine, const Sample& sample);

    // Whether an agreement could change anything now; the same on all ranks.
    bool wants_agreement() const;
    Words contribute() const;
    // True when the usual engine, or why it is that, has changed.
    bool conclude(const Words& sums, std::uint64_t ranks);

    Op op() const { return op_; }
    // Of the first call; what the class is called by.
    std::uint64_t bytes() const { return bytes_; }
    Engine usual() const { return usual_; }
    // The numbers of the last conclusion, in words; empty before there was one.
    const std::string& finding() const { return finding_; }

  private:
    enum class Phase : std::uint8_t { watching, trying, settled };
    struct Means {
        bool known = false;
        double exposed_s = 0, elapsed_s = 0;
    };

    bool worth_trying(double gap_s);
    void compare(const Means& host, const Means& device);
    void settle();

    Op op_;
    std::uint64_t bytes_;
    Engine usual_;
    std::vector<TableRow> rows_;
    std::uint64_t least_worth_trying_;
    Phase phase_ = Phase::watching;
    std::uint64_t calls_ = 0;         // in this phase
    std::uint64_t look_again_after_;  // calls of a settled slot
    std::array<Samples, 2> samples_;
    std::string finding_;
};

}  // namespace offpath::mpi
