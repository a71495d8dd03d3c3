// Reads what to_goal() and `offpath sim --goal` write: what each rank sends, receives and computes, and what
// must have ended before. Messages are matched here, so that a simulator needs no matching of its own.
// Depends on no simulator.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace offpath::sim {

// The file cannot be read, or is not GOAL as to_goal() writes it. what() names file, line and cause.
class GoalError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

enum class GoalKind : std::uint8_t { send, recv, calc };

struct GoalOp {
    GoalKind kind = GoalKind::calc;
    std::uint32_t rank = 0;
    std::uint64_t amount = 0;               // bytes of a message, nanoseconds of a computation
    std::uint32_t peer = 0, tag = 0;        // of a message
    std::uint32_t match = 0;                // index of the other end of a message
    std::uint32_t waits_for = 0;            // number of operations that must end before
    std::vector<std::uint32_t> successors;  // operations that wait for this one, all of the same rank
};

struct GoalJob {
    std::uint32_t ranks = 0;
    std::vector<GoalOp> ops;  // of all ranks, in the order of the file
};

// Throws GoalError. Every send has exactly one receive of the same pair of ranks, tag and bytes, and the
// reverse; equal ones are matched in the order of the file.
GoalJob read_goal(const std::string& path);

}  // namespace offpath::sim
