// Presence: how much of its time this rank spends outside MPI. That tells whether peers that need it for
// their one-sided operations would have to wait, and so whether a device pays (ways.h).
//
// Counted while there is a window that can be served in two ways; what lies between such windows is neither
// inside nor outside. Calls that can block and one-sided calls are timed, each of them: a rank that shares
// its core is stopped anywhere, and samples would take it for one that computes.
//
// Threads: one at a time. With MPI_THREAD_MULTIPLE nothing is counted.
#pragma once

#include <cstdint>

namespace offpath::mpi::presence {

inline bool counted = false;

// Both cumulative, in nanoseconds; the difference between two readings is what counts.
struct Reading {
    std::uint64_t counted_ns = 0;
    std::uint64_t inside_ns = 0;
};
Reading read();

// Since the latest such call, or since the first window.
Reading seen_lately();

// Begin and end of a window with two ways.
void begin();
void end();

// Around a call of MPI. May be nested.
class Inside {
  public:
    Inside() : counts_(counted) {
        if (counts_) enter();
    }
    ~Inside() {
        if (counts_) leave();
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

  private:
    static void enter();
    static void leave();

    bool counts_;
};

}  // namespace offpath::mpi::presence
