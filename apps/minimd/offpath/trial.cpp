#include "minimd/offpath/trial.h"

#include <algorithm>

namespace minimd {

void Trial::ended(double seconds, MPI_Comm comm) {
    if (!on_) return;
    const double round = seconds - last_;
    // The time at which the very first round began is not known.
    if (last_ >= 0.0) {
        if (round_ >= trial_ - usual && round_ < trial_) before_.push_back(round);
        if (round_ > trial_ && round_ < trial_ + tried) in_trial_.push_back(round);
        if (round_ > trial_ + tried) after_.push_back(round);
    }
    last_ = seconds;
    if (settles()) {
        decide(comm);
    } else {
        ++round_;
    }
    now_ = next_;
    next_ = choose(round_ + 1);
}

void Trial::decide(MPI_Comm comm) {
    std::sort(before_.begin(), before_.end());
    double all[] = {*std::max_element(in_trial_.begin(), in_trial_.end()), before_[before_.size() / 2],
                    *std::min_element(after_.begin(), after_.end())};
    MPI_Allreduce(MPI_IN_PLACE, all, 3, MPI_DOUBLE, MPI_SUM, comm);
    const bool better = all[0] < margin * std::min(all[1], all[2]);
    if (better) {
        usual_ = !usual_;
        between_ = between;
    }
    trial_ = between_;
    if (!better) between_ = std::min(2 * between_, most_between);
    before_.clear();
    in_trial_.clear();
    after_.clear();
    round_ = 0;
}

}  // namespace minimd
