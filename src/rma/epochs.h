// Epochs: the outstanding operations of an origin at one target of a window. A flush closes the current
// epoch. It completes when this epoch and all earlier ones have no outstanding operations, and gets the first
// error among them. A flush therefore never waits for operations that started after it. Pure. Threads: one.
#pragma once

#include "base/completion.h"

#include <cstdint>
#include <deque>
#include <vector>

namespace offpath::rma {

// A flush of one or several targets. The caller owns it; it is complete when `left` is 0.
struct Flush {
    std::uint32_t left = 0;
    Status status = Status::ok;
};

class Epochs {
  public:
    // An operation starts. Pass the epoch that it returns to end().
    std::uint64_t start();
    // The operation is over. Flushes that complete with it are appended to `over`.
    void end(std::uint64_t epoch, Status status, std::vector<Flush*>& over);
    // Adds one to flush.left if the flush has to wait. Otherwise it copies the error, if there is one.
    void flush(Flush& flush);
    bool idle() const { return entries_.empty(); }

  private:
    struct Entry {
        std::uint64_t outstanding = 0;
        Status status = Status::ok;
        std::vector<Flush*> flushes;  // not empty: closed
    };
    std::deque<Entry> entries_;
    std::uint64_t first_ = 0;  // number of entries_.front()
};

}  // namespace offpath::rma
