// Pace: the number of synchronizing calls between two agreements of a communicator's ranks (agreement.h).
// Pure. One thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace offpath::mpi {

class Pace {
  public:
    // Counts a call; true if the ranks agree in this one.
    bool due() { return ++calls_ >= every_ || goes_on_; }
    // Counts a call, unless the ranks agree in it: then due() must count it.
    bool counts_quietly() {
        if (calls_ + 1 >= every_ || goes_on_) return false;
        ++calls_;
        return true;
    }
    // An agreement has begun and needs the following calls too.
    void begin() {
        goes_on_ = true;
        calls_before_ = calls_;
    }
    // It had no result.
    void give_up() { goes_on_ = false; }
    // From now on, every call is due.
    void always() { every_ = 0; }
    // After an agreement: the time that the calls before it took, and the wanted time between two agreements;
    // the same values on all ranks.
    void set(std::uint64_t nanoseconds, std::uint64_t wanted_between) {
        const std::uint64_t calls = goes_on_ ? calls_before_ : calls_;
        const std::uint64_t each =
            std::max<std::uint64_t>(nanoseconds / std::max<std::uint64_t>(calls, 1), 1);
        every_ = std::clamp<std::uint64_t>(wanted_between / each, 1, fastest_growth * every_);
        calls_ = 0;
        goes_on_ = false;
    }

  private:
    // A phase of quick calls predicts little about the next phase.
    static constexpr std::uint64_t fastest_growth = 4;

    std::uint64_t calls_ = 0;
    std::uint64_t every_ = 8;
    bool goes_on_ = false;
    std::uint64_t calls_before_ = 0;  // the agreement that goes on
};

}  // namespace offpath::mpi
