#include "rma/locks.h"

#include <algorithm>

namespace offpath::rma {

void LockQueue::grant(const Asker& asker) {
    holders_.insert(asker.rank);
    exclusive_ = asker.exclusive;
}

LockQueue::Answer LockQueue::try_lock(const Asker& asker) {
    const bool waits_already = std::any_of(waiting_.begin(), waiting_.end(),
                                           [&](const Asker& other) { return other.rank == asker.rank; });
    if (waits_already || holders_.contains(asker.rank)) return Answer::refused;
    // While nothing is held exclusively, only exclusive askers wait.
    if (!free_for(asker)) return Answer::waits;
    grant(asker);
    return Answer::granted;
}

LockQueue::Answer LockQueue::lock(const Asker& asker) {
    const Answer answer = try_lock(asker);
    if (answer == Answer::waits) waiting_.push_back(asker);
    return answer;
}

bool LockQueue::unlock(std::uint32_t rank, std::vector<Asker>& granted) {
    if (holders_.erase(rank) == 0) return false;
    if (!holders_.empty()) return true;
    exclusive_ = false;
    if (waiting_.empty()) return true;
    const bool one = waiting_.front().exclusive;
    for (auto asker = waiting_.begin(); asker != waiting_.end();) {
        if (asker->exclusive != one) {
            ++asker;
            continue;
        }
        grant(*asker);
        granted.push_back(*asker);
        asker = waiting_.erase(asker);
        if (one) break;
    }
    return true;
}

std::vector<LockQueue::Asker> LockQueue::give_up() {
    std::vector<Asker> all(waiting_.begin(), waiting_.end());
    waiting_.clear();
    return all;
}

}  // namespace offpath::rma
