// Scratch: buffers of one size in the device's memory that a pipeline refills. An op that fills a buffer
// starts once all ops that use its old contents are done.
#pragma once

#include "schedule/builder.h"

#include <cstdint>
#include <vector>

namespace offpath::collectives {

class Scratch {
  public:
    Scratch(schedule::Builder& builder, std::uint64_t count, std::uint64_t bytes)
        : builder_(builder), bytes_(bytes), slot_(builder.scratch_slot(count * bytes)), users_(count) {}

    schedule::BufferRef at(std::uint64_t buffer) const { return {slot_, buffer * bytes_}; }
    void fill(std::uint64_t buffer, schedule::OpId op) {
        for (schedule::OpId user : users_[buffer])
            builder_.depend(op, user);
        users_[buffer].clear();
    }
    // The contents are there after `ready`, and `op` uses them.
    void use(std::uint64_t buffer, schedule::OpId ready, schedule::OpId op) {
        builder_.depend(op, ready);
        users_[buffer].push_back(op);
    }

  private:
    schedule::Builder& builder_;
    std::uint64_t bytes_;
    std::uint32_t slot_;
    std::vector<std::vector<schedule::OpId>> users_;
};

}  // namespace offpath::collectives
