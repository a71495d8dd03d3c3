// OpsInFlight: bounds how many ops of a sequence are in flight. Each added op starts only when the op `limit`
// places before it is done.
#pragma once

#include "schedule/builder.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace offpath::collectives {

class OpsInFlight {
  public:
    OpsInFlight(schedule::Builder& builder, std::uint32_t limit)
        : builder_(builder), limit_(std::max<std::uint32_t>(limit, 1)) {}

    void add(schedule::OpId op) {
        if (ops_.size() >= limit_) builder_.depend(op, ops_[ops_.size() - limit_]);
        ops_.push_back(op);
    }

  private:
    schedule::Builder& builder_;
    std::uint32_t limit_;
    std::vector<schedule::OpId> ops_;
};

// For algorithms that pipeline segments to one peer. Enough sends are in flight that the wire never idles
// between two, and enough receives are posted that no send waits for its receive.
constexpr std::uint32_t pipeline_sends = 8;
constexpr std::uint32_t pipeline_recvs = 2 * pipeline_sends;

}  // namespace offpath::collectives
