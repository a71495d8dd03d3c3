// Which engine a communicator's collectives use: by operation and bytes, and by what was agreed on while the
// program runs.
//
// Every rank asks once for each non-blocking collective, in the order in which they are called on the
// communicator, and gets the same answer, since an answer hangs on nothing but that order, the operation, the
// bytes and agreements. What is agreed on takes effect at a number of calls that no rank has passed.
//
// One object a communicator. Calls are ordered as the collectives of a communicator are; samples may come
// from any thread. No MPI in here.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "refinement.h"
#include "table.h"

namespace offpath::mpi {

// Where a switch-over comes from.
enum class Source : std::uint8_t { fixed, given, table };

// Whether the same call may go to one engine now and to the other later, for the sake of measurements. Sums
// of floating-point numbers may not: the engines add in different orders, so results would depend on time.
enum class Engines : std::uint8_t { any, same };

struct Choice {
    bool device = false;
    HostReason reason = HostReason::none;  // where not
    Slot* sampled = nullptr;               // what this call costs goes here, with `call`
    Slot::Call call;
    bool first = false;  // of its operation and class of sizes
    Engines engines = Engines::any;
};

class Choices {
  public:
    // `first_trial_after`: so many calls are watched before the other engine is tried; 0: never.
    Choices(const Selection& selection, const Table& table, TeamShape shape, std::uint64_t first_trial_after);

    // The next collective, whose bytes all ranks know alike. With Engines::same the engine depends on the
    // switch-over alone, and the call is neither tried nor measured.
    Choice next(Op op, Form form, std::uint64_t bytes, Engines engines = Engines::any);
    // The next one of which no rank knows all sizes: on or off as a whole; its parts go by threshold().
    Choice next_by_parts(Op op, Form form);
    // From how many bytes on the device pays; at least 1.
    std::uint64_t threshold(Op op, Form form) const;

    std::uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }
    // From call number `from` on (the first is 0), which of the operations of the settings are on.
    void switch_at(std::uint64_t from, OpSet ops);

    void add_sample(Slot& slot, const Slot::Call& call, const Sample& sample);

    // An agreement on what was measured. The slots that take part are the same on all ranks.
    std::vector<std::uint64_t> contribute() const;
    // `sums` of contribute() over all `ranks`; `elapsed_ns` since the last agreement, the same on all ranks.
    // Returns the slots whose engine or reason changed.
    std::vector<const Slot*> conclude(std::span<const std::uint64_t> sums, std::uint64_t ranks,
                                      std::uint64_t elapsed_ns);
    // Whether one is wanted before its time.
    bool wants_agreement_soon() const;

    const TeamShape& shape() const { return shape_; }
    Source source(Op op) const { return thresholds_[static_cast<std::size_t>(op)].source; }
    std::vector<TableRow> rows(Op op) const { return table_->nearest(op, shape_); }
    const std::vector<std::unique_ptr<Slot>>& slots() const { return slots_; }

  private:
    struct Threshold {
        std::uint64_t bytes = never;
        std::uint64_t blocking = never;
        Source source = Source::fixed;
    };
    bool count_call(Op op, Form form);
    bool enabled(Op op, Form form) const;
    HostReason why_off(Op op, Form form) const;
    Slot* find_slot(Op op, std::uint64_t bytes) const;
    Slot* make_slot(Op op, std::uint64_t bytes, bool device);
    bool first_of(Op op, Form form, std::uint64_t bytes);
    std::vector<Slot*> taking_part() const;

    const Table* table_;
    TeamShape shape_;
    std::uint64_t first_trial_after_;
    std::array<Threshold, op_count> thresholds_{};
    std::array<std::array<std::uint64_t, op_count>, 2> seen_{};  // one bit a class of sizes; blocking apart
    OpSet asked_for_;                                            // by OFFPATH_OPS
    OpSet ops_;                                                  // on now
    std::atomic<std::uint64_t> calls_{0};
    struct Switch {
        std::uint64_t from;
        OpSet ops;
    };
    std::vector<Switch> switches_;  // not yet in effect, in order
    std::atomic<bool> switches_pending_{false};
    mutable std::mutex mutex_;  // samples, switches
    std::vector<std::unique_ptr<Slot>> slots_;
};

// Sizes between two powers of two are one class.
unsigned size_class(std::uint64_t bytes);

}  // namespace offpath::mpi
