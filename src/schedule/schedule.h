// Schedule: an immutable graph of ops for one rank of a team, made by a Builder or by decode(). Owns its
// arrays; copying is deep, moving cheap. Threads: const access from any number.
//
// Invariants of a finished schedule: every dependency names an earlier op of the graph's topological order,
// so the graph is acyclic. All slots and peers are in range. validate.h checks schedules that came from
// outside.
#pragma once

#include "schedule/kernel_call.h"
#include "schedule/op.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace offpath::schedule {

class Schedule {
  public:
    Schedule() = default;
    // `edges` are (before, after) pairs; duplicates are merged. An edge that names no op throws
    // std::out_of_range, because the graph cannot represent it. validate() checks everything else.
    Schedule(std::uint32_t rank, std::uint32_t team_size, std::vector<Slot> slots, std::vector<Op> ops,
             std::vector<std::pair<OpId, OpId>> edges, std::vector<KernelCall> calls = {});

    std::uint32_t rank() const { return rank_; }
    std::uint32_t team_size() const { return team_size_; }
    std::span<const Slot> slots() const { return slots_; }
    std::span<const Op> ops() const { return ops_; }
    // The compute ops' calls, in the order of the ops.
    std::span<const KernelCall> calls() const { return calls_; }
    // The ops that may start once `op` is done.
    std::span<const OpId> successors(OpId op) const {
        return {successors_.data() + first_successor_[op], successors_.data() + first_successor_[op + 1]};
    }
    std::uint32_t dependency_count(OpId op) const { return dependency_counts_[op]; }
    std::span<const std::uint32_t> dependency_counts() const { return dependency_counts_; }
    // The copy that the rank and its proxy may make together (base/shared_parts.h): the only one of the
    // schedule, between two user slots, before and after which nothing has to be done. npos: there is none.
    static constexpr OpId npos = UINT32_MAX;
    OpId shared_copy() const;
    // For each slot, whether transfers, copies and reductions touch every byte of it. Bytes that none of them
    // touches may be in use by others while the schedule runs.
    std::vector<bool> slots_used_whole() const;
    // Payload bytes that this rank sends to other ranks.
    std::uint64_t bytes_sent() const;

    friend bool operator==(const Schedule&, const Schedule&) = default;

  private:
    std::uint32_t rank_ = 0;
    std::uint32_t team_size_ = 1;
    std::vector<Slot> slots_;
    std::vector<Op> ops_;
    std::vector<KernelCall> calls_;
    std::vector<std::uint32_t> first_successor_{0};  // ops + 1 entries into successors_
    std::vector<OpId> successors_;
    std::vector<std::uint32_t> dependency_counts_;
};

}  // namespace offpath::schedule
