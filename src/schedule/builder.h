// Builder: writes a schedule. Declare the slots, add the ops (each call returns an id), declare the
// dependencies, then call finish(), which uses the builder up. Threads: one.
#pragma once

#include "schedule/schedule.h"

#include <initializer_list>

namespace offpath::schedule {

class Builder {
  public:
    Builder(std::uint32_t rank, std::uint32_t team_size) : rank_(rank), team_size_(team_size) {}

    std::uint32_t user_slot(std::uint64_t bytes) { return add_slot(SlotKind::user, bytes); }
    std::uint32_t scratch_slot(std::uint64_t bytes) { return add_slot(SlotKind::scratch, bytes); }

    OpId copy(BufferRef src, BufferRef dst, std::uint64_t bytes);
    OpId send(std::uint32_t peer, std::uint64_t tag, BufferRef src, std::uint64_t bytes);
    OpId recv(std::uint32_t peer, std::uint64_t tag, BufferRef dst, std::uint64_t bytes);
    OpId reduce(DataType type, Reduction reduction, BufferRef src, BufferRef dst, std::uint64_t bytes);
    OpId signal(std::uint32_t peer, std::uint64_t signal);
    OpId wait(std::uint64_t signal, std::uint64_t count);
    OpId compute(KernelCall call);

    // `after` starts once `before` is done.
    void depend(OpId after, OpId before) { edges_.emplace_back(before, after); }
    void depend(OpId after, std::initializer_list<OpId> before) {
        for (OpId op : before)
            depend(after, op);
    }
    OpId op_count() const { return static_cast<OpId>(ops_.size()); }

    Schedule finish();

  private:
    std::uint32_t add_slot(SlotKind kind, std::uint64_t bytes);
    OpId add(Op op);

    std::uint32_t rank_, team_size_;
    std::vector<Slot> slots_;
    std::vector<Op> ops_;
    std::vector<KernelCall> calls_;
    std::vector<std::pair<OpId, OpId>> edges_;
};

}  // namespace offpath::schedule
