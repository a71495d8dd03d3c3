// Patterns: the operations that the simulator knows by name. Each is what the product does for it: the
// schedule that the product's builder makes, a message that the proxies match, or accesses to a window.
//
// Ownership: a Step owns a rank's plans and buffers, and must live until the simulation has ended.
#pragma once

#include "sim/programs/rank.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace offpath::sim {

// One rank's part in one repetition of a pattern.
class Step {
  public:
    virtual ~Step() = default;
    // What the rank posts. It may be called again when the operations of the last call are over.
    virtual std::vector<Operation> operations() = 0;
    // With data: whether the last repetition brought the right bytes.
    virtual bool right() const { return true; }
    // Null if the pattern is no schedule.
    virtual const schedule::Schedule* schedule() const { return nullptr; }
};

std::span<const char* const> pattern_names();

// `bytes`: of each pair of ranks for alltoall, of each rank for allgather, gather, scatter and
// reduce_scatter, of each neighbour for halo, otherwise of the whole buffer. Throws std::invalid_argument for
// an unknown name or a size that the pattern cannot have.
std::unique_ptr<Step> make_step(const std::string& pattern, Job& job, std::uint32_t rank,
                                std::uint64_t bytes);

}  // namespace offpath::sim
