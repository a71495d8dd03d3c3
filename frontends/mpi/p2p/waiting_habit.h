// WaitingHabit: whether one end of a kind of message has recently only waited for it. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace offpath::mpi::p2p {

class WaitingHabit {
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

}  // namespace offpath::mpi::p2p
