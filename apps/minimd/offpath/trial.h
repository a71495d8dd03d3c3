// Whether devices take part at all: found out while a run lasts, by trying the other way now and then.
//
// A *round* is what is done with one rebuild's lists: the steps up to the next rebuild, and that rebuild with
// its forces. Lists reach the device before a round begins, so each round is decided one before. The other
// way is adopted if all rounds of its trial are faster than the usual ones by a margin; what is unusual once,
// as on a machine that does something else for a moment, changes nothing.
#pragma once

#include <mpi.h>

#include <array>
#include <deque>

namespace minimd {

class Trial {
  public:
    // `on`: is anything tried? If not, devices take part in all rounds.
    explicit Trial(bool on) : on_(on) {}

    // What the first rounds do; before the first of them.
    void begin_with(bool device);

    bool now() const { return now_; }    // does the device take part in this round?
    bool next() const { return next_; }  // and in the one after it?

    // The end of a round, `seconds` after some fixed time. Collective over `comm` when settles() is true.
    bool settles() const;
    void ended(double seconds, MPI_Comm comm);

  private:
    static constexpr std::size_t tried_rounds = 2, usual_rounds = 5;
    static constexpr int before_first = 6, between = 100;  // rounds
    static constexpr double margin = 0.97;

    std::deque<double>& times(bool device) { return times_[device ? 1 : 0]; }
    const std::deque<double>& times(bool device) const { return times_[device ? 1 : 0]; }
    bool counts() const { return before_ == now_; }  // nothing of this round was done differently
    bool choose() const;
    void decide(MPI_Comm comm);

    bool on_;
    bool usual_ = true, before_ = true, now_ = true, next_ = true;
    int planned_ = 0, usual_until_ = before_first;  // rounds of this turn, `next_` not among them
    double last_ = -1.0;
    std::array<std::deque<double>, 2> times_;  // of the last rounds, hosts alone and with the device
};

}  // namespace minimd
