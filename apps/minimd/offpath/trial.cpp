#include "minimd/offpath/trial.h"

#include <algorithm>
#include <vector>

namespace minimd {

void Trial::begin_with(bool device) {
    usual_ = before_ = now_ = next_ = device;
}

// A trial's first round does not count, since the one before it has brought the lists, or has not.
bool Trial::choose() const {
    const int trial = static_cast<int>(tried_rounds) + 1;
    return planned_ < usual_until_ || planned_ >= usual_until_ + trial ? usual_ : !usual_;
}

bool Trial::settles() const {
    return on_ && counts() && now_ != usual_ && times(now_).size() + 1 == tried_rounds && last_ >= 0.0;
}

void Trial::ended(double seconds, MPI_Comm comm) {
    if (!on_) return;
    const bool settled = settles();
    if (last_ >= 0.0 && counts()) {
        times(now_).push_back(seconds - last_);
        if (times(now_).size() > usual_rounds) times(now_).pop_front();
    }
    last_ = seconds;
    if (settled) decide(comm);
    before_ = now_;
    now_ = next_;
    ++planned_;
    next_ = choose();
}

void Trial::decide(MPI_Comm comm) {
    const std::deque<double>& tried = times(!usual_);
    std::vector<double> usual(times(usual_).begin(), times(usual_).end());
    std::sort(usual.begin(), usual.end());
    double both[] = {*std::max_element(tried.begin(), tried.end()),
                     usual.empty() ? 0.0 : usual[usual.size() / 2]};
    MPI_Allreduce(MPI_IN_PLACE, both, 2, MPI_DOUBLE, MPI_SUM, comm);
    if (both[0] < margin * both[1]) usual_ = !usual_;
    for (std::deque<double>& each : times_)
        each.clear();
    planned_ = 0;
    usual_until_ = between;
}

}  // namespace minimd
