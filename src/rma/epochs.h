// Epochs: what an origin has under way to one target of a window. A flush closes the current epoch and is
// over when that epoch and all before it have nothing under way; it gets the first error among them. So a
// flush never waits for what was started after it. Pure. Threads: one.
#pragma once

#include "base/completion.h"

#include <cstdint>
#include <deque>
#include <vector>

namespace offpath::rma {

// A flush of one or several targets. Owned by whoever called it; over when `left` is 0.
struct Flush {
    std::uint32_t left = 0;
    Status status = Status::ok;
};

class Epochs {
  public:
    // An operation starts; what it returns goes to end().
    std::uint64_t start();
    // It is over. Flushes that are over with it are appended to `over`.
    void end(std::uint64_t epoch, Status status, std::vector<Flush*>& over);
    // Adds one to flush.left if it has to wait, else takes the error over, if there is one.
    void flush(Flush& flush);
    bool idle() const { return entries_.empty(); }

  private:
    struct Entry {
        std::uint64_t under_way = 0;
        Status status = Status::ok;
        std::vector<Flush*> flushes;  // not empty: closed
    };
    std::deque<Entry> entries_;
    std::uint64_t first_ = 0;  // number of entries_.front()
};

}  // namespace offpath::rma
