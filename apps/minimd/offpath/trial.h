// Decides whether devices take part at all, by trying the other way now and then during a run.
//
// A *round* is what is done with one rebuild's lists: the steps up to the next rebuild, and that rebuild with
// its forces. Lists reach the device before a round begins, so each round is decided one round ahead. The
// other way is adopted if every round of its trial is faster, by a margin, than the usual rounds before and
// after the trial. So a machine that does something else for a moment, or gets slower or faster, changes
// nothing. Each trial that changes nothing doubles the time until the next one.
#pragma once

#include <mpi.h>

#include <vector>

namespace minimd {

class Trial {
  public:
    // `on`: whether to try anything. If not, devices take part in all rounds.
    explicit Trial(bool on) : on_(on) {}

    // Sets what the first rounds do, if trials are on. To be called before the first round.
    void begin_with(bool device) {
        if (on_) usual_ = now_ = next_ = device;
    }

    bool now() const { return now_; }    // whether the device takes part in this round
    bool next() const { return next_; }  // whether it takes part in the next one

    // Ends a round, `seconds` after some fixed time. Collective over `comm` if settles() was true before the
    // call.
    bool settles() const { return on_ && round_ == trial_ + length - 1; }
    void ended(double seconds, MPI_Comm comm);

  private:
    // The number of rounds in a trial: those of the other way, and all of them, including the usual rounds
    // that end it. The first round of either kind does not count, because the round before it brought, or did
    // not bring, its lists.
    static constexpr int tried = 3, length = 6;
    static constexpr int usual = 5;  // usual rounds that count before a trial
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
