// Sequence: what a rank called, in order, in bounded memory. Repetitions are folded while they are recorded,
// so a loop of a million iterations takes as much memory as one iteration.
//
// A call is a number (CallTable gives it) with its times. The list's end is compared with what stands before
// it: an end that repeats becomes a loop, and loops of equal loops become loops again. While a program
// repeats the innermost loop, each call costs one comparison.
//
// Loops longer than `window` calls are not found. When `limit` nodes are in use, later calls are counted only
// in lost(). Ownership: owns its nodes. Threads: one at a time.
#pragma once

#include <cstdint>
#include <vector>

namespace offpath::profile {

// One call, or the sum of all iterations. Times in ticks of the caller's clock.
struct Times {
    std::uint64_t compute = 0;  // before the call, since the end of the call before
    std::uint64_t inside = 0;
    std::uint64_t tests = 0;  // calls during `compute` that asked for a completion in vain
    std::uint64_t bare = 0;   // how many of the calls had hardly any computation before them
};

struct Node {
    static constexpr std::uint32_t loop = UINT32_MAX;
    std::uint32_t call = loop;
    std::uint32_t iterations = 1;
    std::uint64_t count = 0;  // calls that `times` adds up
    Times times;
    std::vector<Node> body;  // of a loop
};

class Sequence {
  public:
    static constexpr std::size_t window = 256;
    explicit Sequence(std::size_t limit = 100'000) : limit_(limit) {}

    void append(std::uint32_t call, const Times& times);

    // Calls whose times nobody read. They begin where an iteration of the open loop has ended, and each is
    // the loop's next one. settle() ends them: it spreads `ticks` over them as the times of its timed
    // iterations are spread, and returns those of computations.
    bool between_iterations() const { return open_ && iteration_.empty(); }
    const std::vector<Node>& body() const { return nodes_.back().body; }  // of the open loop
    // Of the iterations since the loop was opened whose times were read: the sums for each call of the body.
    const std::vector<Times>& timed() const { return timed_; }
    std::uint64_t timed_rounds() const { return timed_rounds_; }
    void append_untimed(std::size_t calls);
    // How long the untimed calls take if they last as long as the timed ones. `with_next` adds the
    // computation before the call after them.
    double usual_ticks(bool with_next) const;
    std::uint64_t settle(double compute_factor, double inside_factor);

    // Call when nothing is appended any more, before nodes() is read.
    void close();
    const std::vector<Node>& nodes() const { return nodes_; }
    std::uint64_t lost() const { return lost_; }

  private:
    void push(std::uint32_t call, const Times& times);
    void leave_loop();
    void end_loop();
    bool follow(std::uint32_t call, const Times& times);
    void fold();
    void open_loop();
    bool equal_tails(std::size_t left, std::size_t right, std::size_t length) const;

    const std::size_t limit_;
    std::vector<Node> nodes_;
    std::vector<std::uint64_t> keys_;     // of each node; equal nodes have equal ones
    std::vector<std::uint32_t> lengths_;  // of each node's body; 0: a call
    std::vector<Times> iteration_;        // of the open loop, which the list ends with: the calls so far
    std::vector<Times> timed_;
    std::uint64_t timed_rounds_ = 0;
    std::size_t used_ = 0;  // nodes, those in bodies included
    std::uint64_t lost_ = 0;
    std::uint32_t untimed_rounds_ = 0;  // complete iterations
    std::size_t untimed_at_ = 0;        // calls of the one after them
    bool open_ = false;
};

}  // namespace offpath::profile
