// Whether devices take part at all: found out while a run lasts, by trying the other way now and then.
//
// A *round* is what is done with one rebuild's lists: the steps up to the next rebuild, and that rebuild with
// its forces. Lists reach the device before a round begins, so each round is decided one before. The other
// way is adopted if all rounds of its trial are faster, by a margin, than the usual ones before the trial and
// those after it: a machine that does something else for a moment, or gets slower or faster, changes nothing.
// Each trial that changes nothing doubles the time until the next.
#pragma once

#include <mpi.h>

#include <vector>

namespace minimd {

class Trial {
  public:
    // `on`: is anything tried? If not, devices take part in all rounds.
    explicit Trial(bool on) : on_(on) {}

    // What the first rounds do, if anything is tried; before the first of them.
    void begin_with(bool device) {
        if (on_) usual_ = now_ = next_ = device;
    }

    bool now() const { return now_; }    // does the device take part in this round?
    bool next() const { return next_; }  // and in the one after it?

    // The end of a round, `seconds` after some fixed time. Collective over `comm` when settles() is true.
    bool settles() const { return on_ && round_ == trial_ + length - 1; }
    void ended(double seconds, MPI_Comm comm);

  private:
    // Rounds: of the other way, and with those of the usual one that end the trial. The first of either does
    // not count, since the one before it has brought the lists, or has not.
    static constexpr int tried = 3, length = 6;
    static constexpr int usual = 5;  // that count before a trial
    static constexpr int before_first = 6, between = 100, most_between = 1600;
    static constexpr double margin = 0.97;

    bool choose(int round) const { return round < trial_ || round >= trial_ + tried ? usual_ : !usual_; }
    void decide(MPI_Comm comm);

    bool on_;
    bool usual_ = true, now_ = true, next_ = true;
    int round_ = 0;  // since the last trial
    int trial_ = before_first;
    int between_ = between;
    double last_ = -1.0;
    std::vector<double> before_, in_trial_, after_;  // seconds of rounds
};

}  // namespace minimd
