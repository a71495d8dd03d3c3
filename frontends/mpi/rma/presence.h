// Presence: how much of its time this rank spends outside MPI. That tells whether peers that need it for
// their one-sided operations would have to wait, and so whether a device pays (ways.h).
//
// Counted while there is a window that can be served in two ways; what lies between such windows is neither
// inside nor outside. Calls that can block are timed (Inside). One-sided calls are shorter: one in 16 is
// timed and stands for all of them (OneSided).
//
// Threads: one at a time. With MPI_THREAD_MULTIPLE nothing is counted.
#pragma once

#include <cstddef>
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

// Around a call that can block. May be nested.
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

// Around a call that starts a one-sided operation of `elements` elements.
class OneSided {
  public:
    explicit OneSided(int elements) {
        if (counted) begin_call(elements);
    }
    ~OneSided() {
        if (began_ns_ != 0) end_call();
    }
    OneSided(const OneSided&) = delete;
    OneSided& operator=(const OneSided&) = delete;

  private:
    void begin_call(int elements);
    void end_call() const;

    std::uint64_t began_ns_ = 0;  // 0: not timed
    std::uint64_t stands_for_ = 1;
};

}  // namespace offpath::mpi::presence
