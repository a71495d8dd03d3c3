// Habit: whether one end of a kind of message has recently only waited for it. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace offpath::mpi::p2p {

class Habit {
  public:
    // A message has ended.
    void add(bool only_waited) {
        if (only_waited) {
            in_a_row_ = std::min(in_a_row_ + 1, most_needed);
            return;
        }
        if (only_waits()) needed_ = std::min(2 * needed_, most_needed);
        in_a_row_ = 0;
    }
    // The habit needs several waits in a row, and twice as many each time after it was broken. A program that
    // keeps changing its behaviour therefore loses only a small share.
    bool only_waits() const { return in_a_row_ >= needed_; }

  private:
    static constexpr std::uint32_t most_needed = 1024;

    std::uint32_t in_a_row_ = 0;
    std::uint32_t needed_ = 2;
};

// Whether the program computed while a message was outstanding, given its time outside MPI. The device's cost
// at its ends is at most about 100 us, whatever the message's size. A few microseconds pass between any two
// calls.
inline bool has_computed(std::uint64_t outside_ns, std::uint64_t elapsed_ns) {
    return outside_ns > 100'000 || (outside_ns > 5'000 && outside_ns > elapsed_ns / 8);
}

}  // namespace offpath::mpi::p2p
