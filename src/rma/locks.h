// LockQueue: the lock of a window at one target. Requests for the exclusive lock are served in order. A
// request for the shared lock waits only while an exclusive holder exists, never for a rank that itself
// waits. The holders may need the new rank before they unlock (a collective inside their epochs), and MPI
// libraries grant it. A program that never stops sharing therefore starves its writers. Pure. Threads: one.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_set>
#include <vector>

namespace offpath::rma {

class LockQueue {
  public:
    struct Asker {
        std::uint32_t rank = 0;
        bool exclusive = false;
        std::uint64_t token = 0;  // names the request at the asker
    };
    enum class Answer { granted, waits, refused };

    // refused: the rank already holds the lock or waits for it.
    Answer lock(const Asker& asker);
    // Like lock(), but never waits: unless the lock is granted, nothing changes.
    Answer try_lock(const Asker& asker);
    // False: the rank does not hold the lock. `granted` are the requests granted now.
    bool unlock(std::uint32_t rank, std::vector<Asker>& granted);
    // Removes and returns all waiting requests.
    std::vector<Asker> give_up();
    bool held() const { return exclusive_ || !holders_.empty(); }
    std::size_t waiting() const { return waiting_.size(); }

  private:
    bool free_for(const Asker& asker) const { return asker.exclusive ? !held() : !exclusive_; }
    void grant(const Asker& asker);

    std::unordered_set<std::uint32_t> holders_;
    bool exclusive_ = false;
    std::deque<Asker> waiting_;
};

}  // namespace offpath::rma
