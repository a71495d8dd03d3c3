#include "rma/locks.h"

#include <algorithm>

namespace offpath::rma {

void LockQueue::grant(const Asker& asker) {
    holders_.insert(asker.rank);
    exclusive_ = asker.exclusive;
}

LockQueue::Answer LockQueue::lock(const Asker& asker) {
    const bool waits_already = std::any_of(waiting_.begin(), waiting_.end(),
                                           [&](const Asker& other) { return other.rank == asker.rank; });
    if (waits_already || holders_.contains(asker.rank)) return Answer::refused;
    if (!waiting_.empty() || !free_for(asker)) {
        waiting_.push_back(asker);
        return Answer::waits;
    }
    grant(asker);
    return Answer::granted;
}

bool LockQueue::unlock(std::uint32_t rank, std::vector<Asker>& granted) {
    if (holders_.erase(rank) == 0) return false;
    if (holders_.empty()) exclusive_ = false;
    while (!waiting_.empty() && free_for(waiting_.front())) {
        grant(waiting_.front());
        granted.push_back(waiting_.front());
        waiting_.pop_front();
    }
    return true;
}

std::vector<LockQueue::Asker> LockQueue::give_up() {
    std::vector<Asker> all(waiting_.begin(), waiting_.end());
    waiting_.clear();
    return all;
}

}  // namespace offpath::rma
