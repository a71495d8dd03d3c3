// Habit: whether one end of a kind of message has lately done nothing but wait for it. Pure.
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
    // It takes several in a row, and each time after it was broken twice as many: what is lost to a program
    // that keeps changing its ways stays a small share.
    bool only_waits() const { return in_a_row_ >= needed_; }

  private:
    static constexpr std::uint32_t most_needed = 1024;

    std::uint32_t in_a_row_ = 0;
    std::uint32_t needed_ = 2;
};

// Whether a program that was outside MPI for so long while a message was under way has computed beside it.
// What the device costs at its ends is a matter of 100 us at most, whatever the message's size; a few
// microseconds pass between any two calls.
inline bool has_computed(std::uint64_t outside_ns, std::uint64_t elapsed_ns) {
    return outside_ns > 100'000 || (outside_ns > 5'000 && outside_ns > elapsed_ns / 8);
}

}  // namespace offpath::mpi::p2p
