// Which engine a communicator's collectives use: by operation and bytes, and by what the ranks agreed on
// while the program runs.
//
// Every rank asks once for each non-blocking collective, in the order in which they are called on the
// communicator, and gets the same answer. An answer depends only on that order, the operation, the bytes and
// agreements. An agreement takes effect from a number of calls that no rank has passed.
//
// One object per communicator. Calls are ordered like the collectives of a communicator; samples may come
// from any thread. It makes no MPI calls.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "refinement.h"
#include "signature.h"
#include "table.h"

namespace offpath::mpi {

// The origin of a switch-over.
enum class Source : std::uint8_t { fixed, given, table };

// Whether equal calls may use different engines over time, so that they can be compared. Sums of
// floating-point numbers may not: the engines add in different orders, so results would depend on time.
enum class Engines : std::uint8_t { any, same };

struct Choice {
    bool device = false;
    HostReason reason = HostReason::none;  // why not, if it is the host's
    Slot* sampled = nullptr;               // the slot that gets the cost of this call, with `call`
    Slot::Call call;
    bool first = false;  // the first of its operation and class of sizes
    Engines engines = Engines::any;
};

class Choices {
  public:
    // `first_trial_after`: the number of calls before the first trial of the other engine; 0: never.
    // `remembered`: what an earlier run of the program has learned, the same on all ranks; it outlives this.
    Choices(const Selection& selection, const Table& table, TeamShape shape, std::uint64_t first_trial_after,
            std::span<const LearnedRow> remembered = {});

    // For the next collective, whose bytes all ranks know alike. With Engines::same, the engine depends only
    // on the switch-over, and the call is neither tried nor measured.
    Choice next(Op op, Form form, std::uint64_t bytes, Engines engines = Engines::any);
    // For the next collective of which no rank knows all sizes: on or off as a whole, and what the calls of
    // all sizes together cost. Its parts are decided by threshold().
    Choice next_by_parts(Op op, Form form);
    // Counts the next non-blocking collective if it is the host's for certain, because it is too small to be
    // offloaded or tried: next() would give HostReason::small. False: nothing was counted.
    bool counts_as_small(Op op, std::uint64_t bytes) {
        if (bytes >= small_below_[static_cast<std::size_t>(op)] ||
            switches_pending_.load(std::memory_order_acquire))
            return false;
        calls_.store(calls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        return true;
    }
    // The bytes from which on the device pays off; at least 1.
    std::uint64_t threshold(Op op, Form form) const;

    std::uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }
    // Sets which of the configured operations are on, from call number `from` on (the first is 0).
    void switch_at(std::uint64_t from, OpSet ops);

    void add_sample(Slot& slot, const Slot::Call& call, const Sample& sample);

    // An agreement on measurements. The slots that take part are the same on all ranks, and are those of the
    // latest contribute().
    std::vector<std::uint64_t> contribute();
    // `sums` of contribute() over all `ranks`; `elapsed_ns` since the last agreement, the same on all ranks.
    // Returns the slots whose engine or reason changed.
    std::vector<const Slot*> conclude(std::span<const std::uint64_t> sums, std::uint64_t ranks,
                                      std::uint64_t elapsed_ns);
    // Whether nothing is measured, so that no agreement can be wanted before it is due.
    bool measures_nothing() const { return slots_.empty(); }
    // Whether an agreement is wanted before it is due.
    bool wants_agreement_soon() const;
    // The same where some calls are in flight when the ranks agree, and the result is known `delay` calls
    // later.
    bool awaits_agreement(std::uint64_t in_flight, std::uint64_t delay) const;
    // The ranks have agreed on what contribute() gave, and this one does not know the sums.
    void pass_over();

    const TeamShape& shape() const { return shape_; }
    Source source(Op op) const { return thresholds_[static_cast<std::size_t>(op)].source; }
    std::vector<TableRow> rows(Op op) const { return table_->nearest(op, shape_); }
    const std::vector<std::unique_ptr<Slot>>& slots() const { return slots_; }
    // What a later run may start from.
    std::vector<LearnedRow> learned() const;

  private:
    struct Threshold {
        std::uint64_t bytes = never;
        std::uint64_t blocking = never;
        Source source = Source::fixed;
    };
    void find_small_sizes();
    bool count_call(Op op, Form form);
    bool enabled(Op op, Form form) const;
    HostReason why_off(Op op, Form form) const;
    Slot* find_slot(Op op, std::uint64_t bytes) const;
    Slot* make_slot(Op op, std::uint64_t bytes, bool device);
    bool first_of(Op op, Form form, std::uint64_t bytes);

    const Table* table_;
    TeamShape shape_;
    std::uint64_t first_trial_after_;
    std::span<const LearnedRow> remembered_;
    std::array<Threshold, op_count> thresholds_{};
    // One bit per class of sizes; blocking calls separately.
    std::array<std::array<std::uint64_t, op_count>, 2> seen_{};
    // Below these bytes non-blocking calls are the host's, and are not measured; 0 where the operation is
    // off.
    std::array<std::uint64_t, op_count> small_below_{};
    OpSet asked_for_;  // by OFFPATH_OPS
    OpSet ops_;        // on now
    std::atomic<std::uint64_t> calls_{0};
    struct Switch {
        std::uint64_t from;
        OpSet ops;
    };
    std::vector<Switch> switches_;  // not yet in effect, in order
    std::atomic<bool> switches_pending_{false};
    mutable std::mutex mutex_;  // guards samples and switches
    std::vector<std::unique_ptr<Slot>> slots_;
    std::vector<Slot*> agreeing_;
};

}  // namespace offpath::mpi
